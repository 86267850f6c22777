-- Erases a pool, or what is left of one that has lost its meta; the trail of orders stays. What
-- rests for a site goes when its time has come.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version?
-- Replies:
--   changed 1
--   in_use: the pool is open and not paused
--   uninitialised: nothing is left
--   too_new schema
local meta, orders = KEYS[1], string.sub(KEYS[1], 1, -5) .. 'orders'
local schema, loading = nil, nil
-- A key of another type is what this is for.
if call('TYPE', meta).ok == 'hash' then
  schema, loading = unpack(call('HMGET', meta, 'schema', 'loading'))
end
local shut = schema and closed(schema)
  or call('EXISTS', orders, unpack(KEYS)) == 0 and {'uninitialised'}
if shut then
  return shut
end
local kind = call('TYPE', orders).ok
-- Of a pool whose orders are lost nobody is granted anything.
local paused = kind ~= 'hash' or call('HEXISTS', orders, '*') == 1
  or call('HEXISTS', orders, '.') == 0
if schema and not loading and not paused then
  return {'in_use'}
end
allowed(orders, {UNLINK = 0})
record('destroy')
call('UNLINK', orders, unpack(KEYS))
return {'changed', '1'}
