-- Puts endpoints into quarantine, leased ones when their lease ends.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? code id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local ready, cooling, parked = KEYS[2], KEYS[3], KEYS[8]
local move = moves()
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
record('quarantine:' .. code, 4, 1)
local changed = 0
for _, id in ipairs(ids) do
  local place = roll.place(id)
  if place == 'leased' then
    changed = changed + roll.stand(id, place, 'quarantine:' .. code)
  elseif place ~= 'quarantined:' .. code then
    call('ZREM', ready, id)
    call('ZREM', cooling, id)
    call('HSET', parked, id, 'quarantined:' .. code)
    changed = changed + 1
  end
end
return {'changed', text(changed)}
