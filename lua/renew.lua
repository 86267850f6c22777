-- Moves the deadline of a valid lease: never closer, never beyond the largest lifetime.
--
-- KEYS: meta leases requests
-- ARGV: token ttl_us
-- Replies:
--   renewed left_us
--   not_owner
--   ttl_too_large largest_us
--   uninitialised
--   too_new schema
local meta, leases, requests = KEYS[1], KEYS[2], KEYS[3]
local one = token(ARGV[1])
local ttl = integer(ARGV[2], 1, LONGEST, 'ttl')

local schema, largest_ttl, largest_lifetime =
  unpack(call('HMGET', meta, 'schema', 'largest_ttl', 'largest_lifetime'))
local shut = closed(schema) or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl}
if shut then
  return shut
end
local record = call('HGET', requests, one)
local granted_at, id = string.match(record or '', '^%d+:(%d+):%d+:(.+)$')
local owner = id and call('HGET', requests, '@' .. id)
local deadline = owner == one and tonumber(call('ZSCORE', leases, id) or 0) or 0
if deadline <= now then
  return {'not_owner'}
end
local wanted = math.min(now + ttl, granted_at + largest_lifetime)
if wanted > deadline then
  call('ZADD', leases, text(wanted), id)
  deadline = wanted
end
return {'renewed', text(deadline - now)}
