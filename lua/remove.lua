-- Takes members out, leased ones when their lease ends.
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
local changed = 0
local gone = {}
for _, id in ipairs(ids) do
  if place_of(id) == 'leased' then
    changed = changed + stand(id, 'leased', 'remove')
  else
    gone[#gone + 1] = id
  end
end
if #gone > 0 then
  call('ZREM', ready, unpack(gone))
  call('ZREM', cooling, unpack(gone))
  call('HDEL', parked, unpack(gone))
  call('HDEL', orders, unpack(gone))
  forget(gone)
end
return {'changed', text(changed + #gone)}
