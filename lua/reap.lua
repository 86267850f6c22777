-- Takes back leases past their deadline, readies endpoints past their cooldown and forgets
-- tombstones that have lapsed, at most 64 of each.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV:
-- Replies:
--   reaped reclaimed promoted more
--   uninitialised
--   too_new schema
local meta, cooling, leases = KEYS[1], KEYS[3], KEYS[4]
local schema, mode, policy = unpack(call('HMGET', meta, 'schema', 'mode', 'policy'))
local shut = closed(schema)
if shut then
  return shut
end
local move = moves(mode == 'shared' or policy == 'least_assigned')
move.check_types()
local sweep = sweeper(move)
sweep.tombstones()
local reclaimed, promoted = sweep.pool()
local left = call('ZCOUNT', leases, '-inf', stamp) + call('ZCOUNT', cooling, '-inf', stamp)
return {'reaped', text(reclaimed), text(promoted), left > 0 and '1' or '0'}
