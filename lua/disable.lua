-- Keeps endpoints from being granted until they are enabled; leased ones finish their lease. The
-- order says how it is recorded.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? order id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local ready, cooling, parked = KEYS[2], KEYS[3], KEYS[8]
local move = moves()
local roll = roster(move)
local order = ARGV[3]
if order ~= 'disable' and order ~= 'drain' then
  refuse('order')
end
local ids = roll.named(4)
local bar = roll.barred(ids)
if bar then
  return bar
end
record(order, 4, 1)
local changed = 0
for _, id in ipairs(ids) do
  local place = roll.place(id)
  if place == 'ready' or place == 'cooling' or place == 'lost' then
    call('ZREM', place == 'ready' and ready or cooling, id)
    call('HSET', parked, id, 'disabled')
  end
  changed = changed + roll.stand(id, place, order)
end
return {'changed', text(changed)}
