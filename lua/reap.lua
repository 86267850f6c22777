-- Takes back leases past their deadline, readies endpoints past their cooldown and forgets
-- tombstones that have lapsed, at most 64 of each.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former
-- ARGV:
-- Replies:
--   reaped reclaimed promoted more
--   uninitialised
--   too_new schema
local schema, mode, policy = unpack(call('HMGET', meta, 'schema', 'mode', 'policy'))
local shut = closed(schema)
if shut then
  return shut
end
check_types()
sweep_tombstones()
local reclaimed, promoted = sweep(mode == 'shared' or policy == 'least_assigned')
local more = #due(leases, 1) + #due(cooling, 1) > 0
return {'reaped', text(reclaimed), text(promoted), more and '1' or '0'}
