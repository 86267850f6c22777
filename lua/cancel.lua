-- Gives up a token: ends its lease without a cooldown, and bars it from another. A lease that has
-- run out is taken back.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: token tombstone_us
-- Replies:
--   released
--   tombstoned
--   uninitialised
--   too_new schema
local meta, leases, requests, cancelled = KEYS[1], KEYS[4], KEYS[6], KEYS[7]
local one = token(ARGV[1])
local till = now + integer(ARGV[2], 0, LONGEST, 'tombstone')

local schema, policy = unpack(call('HMGET', meta, 'schema', 'policy'))
local shut = closed(schema)
if shut then
  return shut
end
local move = moves(policy == 'least_assigned')
move.check_types()
local sweep = sweeper(move)
sweep.tombstones()

local record = call('HGET', requests, one)
local worth, grant = nil, nil
if record then
  worth, grant = sweep.recall(one, record)
end
if worth == 'tombstone' then
  -- A longer bar that stands is kept.
  till = math.max(till, tonumber(string.match(record, '%d+$')))
end
call('HSET', requests, one, 'cancelled:' .. text(till))
call('ZADD', cancelled, text(till), one)
if worth ~= 'lease' then
  return {'tombstoned'}
end
local id = grant[1]
call('ZREM', leases, id)
call('HDEL', requests, '@' .. id)
move.settle({id}, {call('HGET', move.orders, id)}, {}, {now})
return {'released'}
