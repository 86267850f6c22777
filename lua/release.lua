-- Ends valid leases with their verdicts, up to 16. The shun keys are those of the releases with
-- a shun, in order.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
--   shun*
-- ARGV: (token cooldown_us strike quarantine? shun_us)+ hint?
-- Replies:
--   ended (released|not_owner)+
--   uninitialised
--   too_new schema
local meta, leases, requests, uses, strikes = KEYS[1], KEYS[4], KEYS[6], KEYS[10], KEYS[12]
local asked = (#ARGV - 1) / 5
if asked ~= floor(asked) or asked < 1 or asked > 16 then
  refuse('releases')
end
local tokens, cooldowns, reasons, codes, rests, sites, seen = {}, {}, {}, {}, {}, {}, {}
sites[0] = 12
for nth = 1, asked do
  tokens[nth] = token(ARGV[5 * nth - 4])
  cooldowns[nth], reasons[nth], codes[nth], rests[nth], sites[nth] =
    verdict_at(5 * nth - 3, sites[nth - 1])
end

local schema, policy, last, due = unpack(call('HMGET', meta, 'schema', 'policy', 'fence', 'due'))
local shut = closed(schema)
if shut then
  return shut
end
local ids, fences = {}, {}
for nth, record in ipairs(call('HMGET', requests, unpack(tokens))) do
  local fence, id = string.match(record or '', '^(%d+):%d+:%d+:(.+)$')
  ids[nth], fences[nth] = id or '', fence
end
local deadlines = call('ZMSCORE', leases, unpack(ids))
local standing = call('HMGET', string.sub(meta, 1, -5) .. 'orders', unpack(ids))

-- Those that are valid, as positions, and whether they just become ready or cool.
local reply, ended, struck, plain = {'ended'}, {}, false, true
for nth, one in ipairs(tokens) do
  local valid = deadlines[nth] and tonumber(deadlines[nth]) > now and not seen[one]
  reply[nth + 1] = valid and 'released' or 'not_owner'
  if valid then
    seen[one], ended[#ended + 1] = true, nth
    struck = struck or reasons[nth] ~= 'keep'
    plain = plain and not standing[nth] and not codes[nth] and rests[nth] == 0
  end
end
if not ended[1] then
  return reply
end
local owner, gone, order, code, ready_at = {}, {}, {}, {}, {}
for nth, at in ipairs(ended) do
  owner[nth], order[nth], code[nth] = ids[at], standing[at], codes[at]
  gone[2 * nth - 1], gone[2 * nth] = tokens[at], '@' .. ids[at]
  ready_at[nth] = now + cooldowns[at]
end
local records = struck and call('HMGET', strikes, unpack(owner)) or {}
local by_share = policy == 'least_assigned'
local ranks = plain and by_share and call('ZMSCORE', uses, unpack(owner)) or {}
local move = not plain and rare().moves(by_share)
if move then
  move.check_types()
else
  free(owner, ready_at, ranks, due, struck)
end
call('HDEL', requests, unpack(gone))
call('ZREM', leases, unpack(owner))
for nth, at in ipairs(ended) do
  if records[nth] or reasons[at] == 'add' then
    rare().judge(owner[nth], fences[at], reasons[at], records[nth], last)
  end
  if rests[at] > 0 then
    rare().shun(KEYS[sites[at]], owner[nth], rests[at])
  end
end
local _ = move and move.settle(owner, order, code, ready_at)
tell(ARGV[#ARGV], ready_at, order, code)
return reply
