-- Keeps endpoints from being granted until they are enabled; leased ones finish their lease. The
-- order says how it is recorded.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former
-- ARGV: order id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local order = ARGV[1]
if order ~= 'disable' and order ~= 'drain' then
  refuse('order')
end
local ids = named(2)
local bar = barred(ids)
if bar then
  return bar
end
local changed = 0
for _, id in ipairs(ids) do
  local place = place_of(id)
  if place == 'ready' or place == 'cooling' then
    call('ZREM', place == 'ready' and ready or cooling, id)
    call('HSET', parked, id, 'disabled')
  end
  changed = changed + stand(id, place, order)
end
return {'changed', text(changed)}
