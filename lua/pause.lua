-- Grants nothing until the pool is resumed. Holders may renew and release.
--
-- KEYS: meta
-- ARGV: by? config_version? orders
-- Replies:
--   changed number
--   uninitialised
--   too_new schema
local meta, orders = KEYS[1], ARGV[3]
local shut = closed(call('HGET', meta, 'schema'))
if shut then
  return shut
end
local paused = ordered(orders, {'*'})[1]
allowed(orders, {HSET = 2})
record('pause')
call('HSET', orders, '*', 'pause')
return {'changed', paused and '0' or '1'}
