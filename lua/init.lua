-- Sets up a pool, open or to be loaded. After a loss nothing is granted until the leases of before
-- have run out, and fences go on above those of before: from the time in microseconds, for no pool
-- grants a million a second. The trail of orders stays from before.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? mode policy largest_ttl_us largest_lifetime_us failover_hold start loss
-- Replies:
--   changed 1
--   exists: the pool has been set up before
--   leftovers name+: it has not, or has lost what says so, and has other keys
local meta, requests, orders = KEYS[1], KEYS[6], string.sub(KEYS[1], 1, -5) .. 'orders'
local mode, policy, failover_hold, start, loss = ARGV[3], ARGV[4], ARGV[7], ARGV[8], ARGV[9]
local largest_ttl = integer(ARGV[5], 1, LONGEST, 'largest_ttl')
local largest_lifetime = integer(ARGV[6], largest_ttl, LONGEST, 'largest_lifetime')
if mode ~= 'exclusive' and mode ~= 'shared' then
  refuse('mode')
elseif policy ~= 'earliest' and policy ~= 'least_assigned' and policy ~= 'random' then
  refuse('policy')
elseif failover_hold ~= 'on' and failover_hold ~= 'off' then
  refuse('failover_hold')
elseif start ~= 'open' and start ~= 'loading' then
  refuse('start')
elseif loss ~= 'none' and loss ~= 'after_loss' then
  refuse('loss')
end

if call('TYPE', meta).ok == 'hash' and call('HEXISTS', meta, 'schema') == 1 then
  return {'exists'}
end
local left = {'leftovers'}
local function look(key)
  if call('EXISTS', key) == 1 then
    left[#left + 1] = string.sub(key, #meta - 3)
  end
end
for _, key in ipairs(KEYS) do
  look(key)
end
look(orders)
if #left > 1 then
  return left
end

local fence, hold_until, order = '0', '0', 'init'
if start == 'loading' then
  order = order .. ':loading'
end
if loss == 'after_loss' then
  order, fence = order .. ':after_loss', stamp
  -- A shared pool reserves nothing, so that nothing is to be waited for.
  hold_until = mode == 'exclusive' and text(now + largest_ttl) or '0'
end
record(order)
call('HSET', requests, 'note', NOTE)
-- Whoever finds no note among the orders does not take it for none: they may be on another node.
call('HSET', orders, '.', NOTE)
call('HSET', meta, 'note', NOTE, 'due', 0, 'schema', SCHEMA, 'fence', fence, 'first_fence', fence,
  'mode', mode, 'policy', policy, 'largest_ttl', text(largest_ttl), 'weighted', 0,
  'failover_hold', failover_hold, 'hold_until', hold_until,
  'identity', string.match(call('INFO', 'replication'), 'master_replid:(%x+)') or '',
  'largest_lifetime', text(largest_lifetime))
if start == 'loading' then
  call('HSET', meta, 'loading', 1)
end
return {'changed', '1'}
