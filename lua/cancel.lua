-- Gives up a token: ends its lease without a cooldown, and bars it from another.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former
-- ARGV: token tombstone_us
-- Replies:
--   released
--   tombstoned
--   uninitialised
--   too_new schema
local one = token(ARGV[1])
local till = now + integer(ARGV[2], 0, LONGEST, 'tombstone')

local schema, policy = unpack(call('HMGET', meta, 'schema', 'policy'))
local shut = closed(schema)
if shut then
  return shut
end
check_types()
local by_share = policy == 'least_assigned'
sweep_tombstones()

local record = call('HGET', requests, one)
local standing = string.match(record or '', '^cancelled:(%d+)$')
local state, grant = nil, nil
if not standing then
  state, grant = recall(one, record, by_share)
end
-- A longer bar that stands is kept.
till = text(math.max(till, tonumber(standing or 0)))
call('HSET', requests, one, 'cancelled:' .. till)
call('ZADD', cancelled, till, one)
if state ~= 'lease' then
  return {'tombstoned'}
end
call('ZREM', leases, grant.id)
call('HDEL', owners, grant.id)
settle({grant.id}, {call('HGET', orders, grant.id)}, {}, {now}, by_share)
return {'released'}
