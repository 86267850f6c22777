-- Ends valid leases with their verdicts, up to 16. The shun keys are those of the releases with
-- a shun, in order.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former shun*
-- ARGV: (token cooldown_us strike quarantine? shun_us)+
-- Replies:
--   ended (released|not_owner)+
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owners, requests, uses, strikes = KEYS[5], KEYS[6], KEYS[10], KEYS[12]
local asked = integer(tostring(#ARGV / 5), 1, 16, 'releases')
local tokens, cooldowns, reasons, codes, rests, sites, seen = {}, {}, {}, {}, {}, {}, {}
sites[0] = 13
for nth = 1, asked do
  tokens[nth] = token(ARGV[5 * nth - 4])
  cooldowns[nth], reasons[nth], codes[nth], rests[nth], sites[nth] =
    verdict_at(5 * nth - 3, sites[nth - 1])
end

local schema, policy, last = unpack(call('HMGET', meta, 'schema', 'policy', 'fence'))
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
if #ended == 0 then
  return reply
end
local owner, gone, order, code, ready_at = {}, {}, {}, {}, {}
for nth, at in ipairs(ended) do
  owner[nth], gone[nth], order[nth], code[nth] = ids[at], tokens[at], standing[at], codes[at]
  ready_at[nth] = now + cooldowns[at]
end
local records = struck and call('HMGET', strikes, unpack(owner)) or {}
local ranks = policy == 'least_assigned' and call('ZMSCORE', uses, unpack(owner)) or {}
local move = not plain and moves(policy == 'least_assigned')
local _ = move and move.check_types() or call('ZCARD', ready) + call('ZCARD', cooling)

allowed(meta, {ZREM = 1, ZADD = 2, HSET = struck and 2 or nil})
-- The one key that may not have been looked at comes first.
call('HDEL', owners, unpack(owner))
call('HDEL', requests, unpack(gone))
call('ZREM', leases, unpack(owner))
for nth, at in ipairs(ended) do
  if reasons[at] ~= 'keep' then
    judge(owner[nth], fences[at], reasons[at], records[nth], last)
  end
  if rests[at] > 0 then
    shun(KEYS[sites[at]], owner[nth], rests[at])
  end
end
if plain then
  free(owner, ready_at, ranks)
else
  move.settle(owner, order, code, ready_at)
end
return reply
