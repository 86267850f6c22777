-- Ends an order to disable, drain or quarantine, and a quarantine.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local meta, parked, strikes = KEYS[1], KEYS[8], KEYS[12]
local mode, policy, last = unpack(call('HMGET', meta, 'mode', 'policy', 'fence'))
local move = moves(mode == 'shared' or policy == 'least_assigned')
local roll = roster(move)
local ids = roll.named(3)
local bar = roll.barred(ids)
if bar then
  return bar
end
record('enable', 3, 1)
local changed, free, since = 0, {}, {}
for _, id in ipairs(ids) do
  local place = roll.place(id)
  local order = roll.order(id, place)
  if order ~= 'remove' then
    call('HDEL', move.orders, id)
    local freed = call('HDEL', parked, id) == 1 or place == 'lost'
    if freed then
      free[#free + 1], since[#since + 1] = id, text(now + #free)
    end
    changed = changed + ((order or freed) and 1 or 0)
    -- Verdicts on grants of before are no more evidence against it.
    if mode == 'shared' then
      call('HSET', strikes, '@' .. id, last or '0')
    end
  end
end
move.ready(free, since)
return {'changed', text(changed)}
