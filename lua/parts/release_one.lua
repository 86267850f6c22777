-- One lease that ends without a mark on its endpoint: what most calls are. Any other leaves this
-- before it writes, and is asked for below as if it had not been here.
repeat
  local one, cooldown, strike, code, rest, channel, more = unpack(ARGV)
  if not channel or more or code ~= '' or rest ~= '0' or strike ~= 'reset' and strike ~= 'keep'
    or #cooldown > 15 or not find(cooldown, '^%d+$') then
    break
  end
  local meta, ready, cooling, leases, _, requests, _, _, _, uses, _, strikes = unpack(KEYS)
  local schema, policy, due = unpack(call('HMGET', meta, 'schema', 'policy', 'due'))
  local record = schema == SCHEMA and call('HGET', requests, one)
  local id = record and match(record, '^%d+:%d+:%d+:(.+)$')
  local own = id and '@' .. id
  -- A record that its endpoint does not point back to is of a lease that is over.
  if not id or call('HGET', requests, own) ~= one
    or (call('ZSCORE', leases, id) or 0) + 0 <= now then
    break
  end
  local order, note = unpack(call('HMGET', string.sub(meta, 1, -5) .. 'orders', id, '.'))
  if order or not note or strike == 'reset' and call('HGET', strikes, id)
    or not may('HDEL', meta, '') or not may('ZREM', meta, '') then
    break
  end
  -- The key that has not been looked at comes first: an error there leaves nothing.
  if cooldown ~= '0' then
    local ends = now + cooldown
    if not may('HSET', meta, '', '') then
      break
    end
    call('ZADD', cooling, format('%d', ends), id)
    local _ = ends < (tonumber(due) or 0) and call('HSET', meta, 'due', format('%d', ends))
  else
    local rank = policy == 'least_assigned' and call('ZSCORE', uses, id)
    call('ZADD', ready, rank or stamp, id)
  end
  call('HDEL', requests, one, own)
  call('ZREM', leases, id)
  local _ = channel ~= '' and cooldown == '0' and pcall(call, 'SPUBLISH', channel, '')
  return {'ended', 'released'}
until true
