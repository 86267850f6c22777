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
local verdicts, tokens = {}, {}
for nth = 1, integer(tostring(#ARGV / 5), 1, BATCH, 'releases') do
  tokens[nth], verdicts[nth] = token(ARGV[5 * nth - 4]), verdict_at(5 * nth - 3)
end

local schema, policy, last = unpack(call('HMGET', meta, 'schema', 'policy', 'fence'))
local shut = closed(schema)
if shut then
  return shut
end
local by_share = policy == 'least_assigned'
local ids, fences = {}, {}
for nth, record in ipairs(call('HMGET', requests, unpack(tokens))) do
  local fence, _, _, id = read(record)
  ids[nth], fences[nth] = id or '', fence
end
local deadlines = call('ZMSCORE', leases, unpack(ids))
local standing = call('HMGET', orders, unpack(ids))

local reply, ended, seen, plain, struck = {'ended'}, {}, {}, true, false
for nth, one in ipairs(tokens) do
  local verdict = verdicts[nth]
  local valid = tonumber(deadlines[nth] or 0) > now and not seen[one]
  if valid then
    seen[one] = true
    ended[#ended + 1] = nth
    struck = struck or verdict.strike ~= 'keep'
    plain = plain and not by_share and not standing[nth] and not verdict.code
      and not verdict.site and verdict.cooldown == 0
  end
  reply[nth + 1] = valid and 'released' or 'not_owner'
end
if #ended == 0 then
  return reply
end
if plain then
  check_type(ready, 'zset')
else
  check_types()
end

local gone, owner, order, codes, ready_at = {}, {}, {}, {}, {}
for nth, at in ipairs(ended) do
  gone[nth], owner[nth], order[nth] = tokens[at], ids[at], standing[at]
  codes[nth], ready_at[nth] = verdicts[at].code, now + verdicts[at].cooldown
end
local records = struck and call('HMGET', strikes, unpack(owner)) or {}
-- The one key that may not have been looked at comes first.
call('HDEL', owners, unpack(owner))
call('HDEL', requests, unpack(gone))
call('ZREM', leases, unpack(owner))
for nth, at in ipairs(ended) do
  judge(owner[nth], fences[at], verdicts[at], records[nth], last)
end
settle(owner, order, codes, ready_at, by_share)
return reply
