-- Puts endpoints into quarantine, leased ones when their lease ends.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former
-- ARGV: code id*
-- Replies:
--   changed number
--   unknown id
--   uninitialised
--   too_new schema
local code = ARGV[1]
if not code or not string.find(code, '^[a-z_]+$') then
  refuse('code')
end
local ids = named(2)
local bar = barred(ids)
if bar then
  return bar
end
local changed = 0
for _, id in ipairs(ids) do
  local place = place_of(id)
  if place == 'leased' then
    changed = changed + stand(id, place, 'quarantine:' .. code)
  elseif place ~= 'quarantined:' .. code then
    call('ZREM', ready, id)
    call('ZREM', cooling, id)
    call('HSET', parked, id, 'quarantined:' .. code)
    changed = changed + 1
  end
end
return {'changed', text(changed)}
