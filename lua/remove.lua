-- Takes members out, leased ones when their lease ends. Counts are kept for about 100,000.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local ready, cooling, parked = KEYS[2], KEYS[3], KEYS[8]
local move = moves()
local roll = roster(move)
local ids = roll.named(3)
local bar = roll.barred(ids)
if bar then
  return bar
end
record('remove', 3, 1)
local changed = 0
local gone = {}
for _, id in ipairs(ids) do
  if roll.place(id) == 'leased' then
    changed = changed + roll.stand(id, 'leased', 'remove')
  else
    gone[#gone + 1] = id
  end
end
if #gone > 0 then
  call('ZREM', ready, unpack(gone))
  call('ZREM', cooling, unpack(gone))
  call('HDEL', parked, unpack(gone))
  call('HDEL', move.orders, unpack(gone))
  move.out(gone)
end
roll.sweep()
return {'changed', text(changed + #gone)}
