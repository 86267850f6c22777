-- Counts a pool, telling what is recorded from what is valid now; with a cursor, the quarantined
-- among some of the parked, which are looked at by parts where they are many.
--
-- KEYS: meta ready cooling leases parked
-- ARGV: orders cursor?
-- Replies:
--   status mode policy largest_ttl_us largest_lifetime_us failover_hold fence paused hold_us
--     ready cooling leased expired parked quarantined? next_us? loading version?
--   parked cursor? quarantined
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local orders, cursor = ARGV[1], ARGV[2]

local schema, mode, policy, largest_ttl, largest_lifetime, failover_hold, fence, hold_until,
  loading, version =
  unpack(call('HMGET', meta, 'schema', 'mode', 'policy', 'largest_ttl', 'largest_lifetime',
    'failover_hold', 'fence', 'hold_until', 'loading', 'config_version'))
local shut = closed(schema)
if shut then
  return shut
end
-- How many of these reasons, each `step` words from the last, are not to disable.
local function counted(reasons, step)
  local number = 0
  for nth = step, #reasons, step do
    number = number + (reasons[nth] ~= 'disabled' and 1 or 0)
  end
  return text(number)
end
if cursor ~= '' then
  local page = call('HSCAN', parked, cursor, 'COUNT', 500)
  return {'parked', page[1] == '0' and '' or page[1], counted(page[2], 2)}
end
local paused = ordered(orders, {'*'})[1]
local cooled = call('ZCOUNT', cooling, '-inf', text(now))
local expired = call('ZCOUNT', leases, '-inf', text(now))
local aside, quarantined, next = call('HLEN', parked), '', nil
if aside <= 1000 then
  quarantined = counted(call('HVALS', parked), 1)
end
for _, key in ipairs({leases, cooling}) do
  local first = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
  next = first and math.min(next or first, first) or next
end
return {
  'status', mode, policy, largest_ttl, largest_lifetime, failover_hold, fence,
  paused and '1' or '0', text(math.max(hold_until - now, 0)),
  text(call('ZCARD', ready) + cooled), text(call('ZCARD', cooling) - cooled),
  text(call('ZCARD', leases) - expired), text(expired), text(aside), quarantined,
  next and text(math.max(math.min(next - now, LONGEST), 0)) or '', loading and '1' or '0',
  version or '',
}
