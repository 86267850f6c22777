-- Ends a pause, or a failover hold: then the server is taken for the one of the last grant.
--
-- KEYS: meta
-- ARGV: orders what
-- Replies:
--   changed number
--   uninitialised
--   too_new schema
local meta, orders, what = KEYS[1], ARGV[1], ARGV[2]
if what ~= 'pause' and what ~= 'hold' then
  refuse('what')
end

local schema, failover_hold, identity, hold_until =
  unpack(call('HMGET', meta, 'schema', 'failover_hold', 'identity', 'hold_until'))
local shut = closed(schema)
if shut then
  return shut
elseif what == 'pause' then
  return {'changed', text(call('HDEL', orders, '*'))}
end
local here = string.match(call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local held = here ~= identity or tonumber(hold_until) > now
if failover_hold == 'on' and here ~= identity then
  call('HSET', meta, 'fence', text(call('HGET', meta, 'fence') + MOST_LOST))
end
call('HSET', meta, 'identity', here, 'hold_until', 0)
return {'changed', failover_hold == 'on' and held and '1' or '0'}
