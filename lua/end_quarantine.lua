-- Ends quarantines for this reason, and no order: what is disabled as well stays out.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? code id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local meta, parked = KEYS[1], KEYS[8]
local mode, policy = unpack(call('HMGET', meta, 'mode', 'policy'))
local move = moves(mode == 'shared' or policy == 'least_assigned')
local roll = roster(move)
local code = ARGV[3]
if not code or not string.find(code, '^[a-z_]+$') then
  refuse('code')
end
local ids = roll.named(4)
local bar = roll.barred(ids)
if bar then
  return bar
end
record('end_quarantine:' .. code, 4, 1)
local changed, free, since = 0, {}, {}
for _, id in ipairs(ids) do
  local place = roll.place(id)
  if place == 'quarantined:' .. code then
    changed = changed + 1
    if roll.order(id, place) then
      call('HSET', parked, id, 'disabled')
    else
      call('HDEL', parked, id)
      free[#free + 1], since[#since + 1] = id, text(now + #free)
    end
  end
end
move.ready(free, since)
return {'changed', text(changed)}
