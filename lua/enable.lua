-- Ends an order to disable, drain or quarantine, and a quarantine.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former
-- ARGV: id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local ids = named(1)
local bar = barred(ids)
if bar then
  return bar
end
local mode, policy = unpack(call('HMGET', meta, 'mode', 'policy'))
local changed, free, since = 0, {}, {}
for _, id in ipairs(ids) do
  local place = place_of(id)
  local order = order_of(id, place)
  if order ~= 'remove' then
    call('HDEL', orders, id)
    local freed = call('HDEL', parked, id) == 1
    if freed then
      free[#free + 1], since[#since + 1] = id, text(now + #free)
    end
    changed = changed + ((order or freed) and 1 or 0)
  end
end
make_ready(free, since, mode == 'shared' or policy == 'least_assigned')
return {'changed', text(changed)}
