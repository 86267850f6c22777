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

local schema, policy, last, due = unpack(call('HMGET', meta, 'schema', 'policy', 'fence', 'due'))
local shut = closed(schema)
if shut then
  return shut
end
local ids, fences, owns = {}, {}, {}
for nth, record in ipairs(call('HMGET', requests, unpack(tokens))) do
  local fence, id = string.match(record or '', '^(%d+):%d+:%d+:(.+)$')
  ids[nth], fences[nth], owns[nth] = id or '', fence, '@' .. (id or '')
end
local owners = call('HMGET', requests, unpack(owns))
local deadlines = call('ZMSCORE', leases, unpack(ids))
local orders = string.sub(meta, 1, -5) .. 'orders'
ids[asked + 1] = '.'
local standing = call('HMGET', orders, unpack(ids))
local _ = standing[asked + 1] or rare().ordered(orders, {})

-- Those that are valid, as positions, and whether they just become ready or cool.
local reply, ended, struck, plain = {'ended'}, {}, false, true
for nth, one in ipairs(tokens) do
  -- A record that its endpoint does not point back to is of a lease that is over.
  local valid = owners[nth] == one and tonumber(deadlines[nth] or 0) > now and not seen[one]
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
  gone[2 * nth - 1], gone[2 * nth] = tokens[at], owns[at]
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
    rare().judge(owner[nth], fences[at], reasons[at], records[nth], last or '0')
  end
  if rests[at] > 0 then
    rare().shun(KEYS[sites[at]], owner[nth], rests[at])
  end
end
local _ = move and move.settle(owner, order, code, ready_at)
tell(ARGV[#ARGV], ready_at, order, code)
return reply
