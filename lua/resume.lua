-- Ends a pause, or a hold after a failover or a loss: then the server is taken for the one of the
-- last grant.
--
-- KEYS: meta
-- ARGV: by? config_version? orders what
-- Replies:
--   changed number
--   uninitialised
--   too_new schema
local meta, orders, what = KEYS[1], ARGV[3], ARGV[4]
if what ~= 'pause' and what ~= 'hold' then
  refuse('what')
end

local schema, failover_hold, identity, hold_until, fence =
  unpack(call('HMGET', meta, 'schema', 'failover_hold', 'identity', 'hold_until', 'fence'))
local shut = closed(schema)
if shut then
  return shut
elseif what == 'pause' then
  ordered(orders, {})
  allowed(orders, {HDEL = 1})
  record('resume')
  return {'changed', text(call('HDEL', orders, '*'))}
end
local here = string.match(call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local failed_over = failover_hold == 'on' and here ~= identity
local held = failed_over or tonumber(hold_until) > now
fence = failed_over and text(fence + MOST_LOST) or fence
record('end_hold')
if failed_over then
  call('HSET', meta, 'fence', fence)
end
call('HSET', meta, 'identity', here, 'hold_until', 0)
return {'changed', held and '1' or '0'}
