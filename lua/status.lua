-- Counts a pool, telling what is recorded from what is valid now. Looks at each parked endpoint.
--
-- KEYS: meta ready cooling leases parked
-- ARGV: orders
-- Replies:
--   status mode policy largest_ttl_us largest_lifetime_us failover_hold fence paused hold_us
--     ready cooling leased expired disabled quarantined next_us? loading version?
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local orders = ARGV[1]

local schema, mode, policy, largest_ttl, largest_lifetime, failover_hold, fence, hold_until,
  loading, version =
  unpack(call('HMGET', meta, 'schema', 'mode', 'policy', 'largest_ttl', 'largest_lifetime',
    'failover_hold', 'fence', 'hold_until', 'loading', 'config_version'))
local shut = closed(schema)
if shut then
  return shut
end
local paused = ordered(orders, {'*'})[1]
local cooled = call('ZCOUNT', cooling, '-inf', text(now))
local expired = call('ZCOUNT', leases, '-inf', text(now))
local disabled, quarantined = 0, 0
for _, reason in ipairs(call('HVALS', parked)) do
  if reason == 'disabled' then
    disabled = disabled + 1
  else
    quarantined = quarantined + 1
  end
end
local next
for _, key in ipairs({leases, cooling}) do
  local first = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
  next = first and math.min(next or first, first) or next
end
return {
  'status', mode, policy, largest_ttl, largest_lifetime, failover_hold, fence,
  paused and '1' or '0', text(math.max(hold_until - now, 0)),
  text(call('ZCARD', ready) + cooled), text(call('ZCARD', cooling) - cooled),
  text(call('ZCARD', leases) - expired), text(expired), text(disabled), text(quarantined),
  next and text(math.max(next - now, 0)) or '', loading and '1' or '0', version or '',
}
