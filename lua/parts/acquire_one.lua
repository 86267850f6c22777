-- One new token without wishes, in a pool in which all is well, nothing is due and something is
-- ready: what most calls are. Any other leaves this before it writes, and is done below as if it
-- had not been here.
repeat
  local ttl_us, cooldown_us, draw, prefer, asked, one, more = unpack(ARGV)
  if not one or more or asked ~= '1' or prefer ~= '' or #one ~= 32 or not find(one, '^%x+$')
    or ttl_us == '' or cooldown_us == '' or draw == '' or #ttl_us > 15 or #cooldown_us > 15
    or #draw > 10 or not find(ttl_us .. cooldown_us .. draw, '^%d+$') then
    break
  end
  local meta, ready, _, leases, _, requests, _, _, _, uses, _, strikes, shun = unpack(KEYS)
  local schema, fence, mode, policy, largest_ttl, weighted, watched, identity, held, due, loading =
    unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'policy', 'largest_ttl', 'weighted',
      'failover_hold', 'identity', 'hold_until', 'due', 'loading'))
  local soonest, ends = tonumber(due) or 0, now + ttl_us
  if schema ~= SCHEMA or mode ~= 'exclusive' or loading or weighted ~= '0' or soonest <= now
    or ends <= now or ends > now + largest_ttl or held ~= '0' and held + 0 > now then
    break
  end
  local paused, note = unpack(call('HMGET', string.sub(meta, 1, -5) .. 'orders', '*', '.'))
  local last = fence + 1
  if paused or not note or last < 1 or last > LONGEST
    or watched == 'on'
    and not find(call('INFO', 'replication'), 'master_replid:' .. identity, 1, true)
    or shun and call('EXISTS', shun) == 1 or call('HGET', requests, one) then
    break
  end
  local at = '0'
  if policy == 'random' then
    at = format('%d', draw % 4294967296 / 4294967296 * call('ZCARD', ready))
  end
  local id = call('ZRANGE', ready, at, at)[1]
  if not id or not may('HSET', meta, '', '') or not may('ZREM', meta, '') then
    break
  end
  local strike, number, deadline = call('HGET', strikes, id), format('%d', last), format('%d', ends)
  call('ZCARD', uses)
  -- The one key that has not been looked at comes first: an error there leaves nothing.
  call('ZADD', leases, deadline, id)
  local record = number .. ':' .. stamp .. ':' .. cooldown_us .. ':' .. id
  call('HSET', requests, one, record, '@' .. id, one)
  call('ZREM', ready, id)
  call('ZADD', uses, 'INCR', '1', id)
  call('HSET', meta, 'fence', number, 'due', soonest < ends and due or deadline)
  return {'granted', '1', id, number, strike and match(strike, '^(%d+):%d+$') or '0', ttl_us}
until true
