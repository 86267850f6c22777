-- Sets up a pool.
--
-- KEYS: meta requests
-- ARGV: mode policy largest_ttl_us largest_lifetime_us failover_hold
-- Replies:
--   changed 1
--   exists: the pool has been set up before
local meta, requests = KEYS[1], KEYS[2]
local mode, policy, hold = ARGV[1], ARGV[2], ARGV[5]
local largest_ttl = integer(ARGV[3], 1, LONGEST, 'largest_ttl')
local largest_lifetime = integer(ARGV[4], largest_ttl, LONGEST, 'largest_lifetime')
if mode ~= 'exclusive' and mode ~= 'shared' then
  refuse('mode')
elseif policy ~= 'earliest' and policy ~= 'least_assigned' and policy ~= 'random' then
  refuse('policy')
elseif hold ~= 'on' and hold ~= 'off' then
  refuse('failover_hold')
end

if call('HGET', meta, 'schema') then
  return {'exists'}
end
-- A server searches a hash from end to end while it is small and its texts are short: with some
-- hundred leases that would be most of what a call costs. A long text makes it look up by hash.
local NOTE = 'Kept by reqwest-lease, not to be changed by hand. This text is long for the sake of speed.'
call('HSET', requests, 'note', NOTE)
call('HSET', meta, 'note', NOTE, 'schema', SCHEMA, 'fence', 0, 'mode', mode, 'policy', policy,
  'largest_ttl', text(largest_ttl), 'weighted', 0, 'failover_hold', hold,
  'identity', string.match(call('INFO', 'replication'), 'master_replid:(%x+)') or '',
  'hold_until', 0, 'due', 0, 'largest_lifetime', text(largest_lifetime))
return {'changed', '1'}
