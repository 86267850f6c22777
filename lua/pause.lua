-- Grants nothing until the pool is resumed. Holders may renew and release.
--
-- KEYS: meta
-- ARGV: orders
-- Replies:
--   changed number
--   uninitialised
--   too_new schema
local meta, orders = KEYS[1], ARGV[1]
local shut = closed(call('HGET', meta, 'schema'))
if shut then
  return shut
end
return {'changed', text(call('HSETNX', orders, '*', 'pause'))}
