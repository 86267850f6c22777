-- One new token without wishes, in a pool in which all is well, nothing is due and something is
-- ready: what most calls are. Any other leaves this before it writes, and is asked for below as if
-- it had not been here.
repeat
  local ttl_us, cooldown_us, draw, prefer, asked, one, more = unpack(ARGV)
  if not one or more or asked ~= '1' or prefer ~= '' or #one ~= 32 or not find(one, '^%x+$')
    or ttl_us == '' or cooldown_us == '' or draw == '' or #ttl_us > 15 or #cooldown_us > 15
    or #draw > 10 or not find(ttl_us .. cooldown_us .. draw, '^%d+$') then
    break
  end
  local meta, ready, _, _, _, requests, _, _, _, uses, _, strikes, shun = unpack(KEYS)
  local schema, fence, mode, largest_ttl, weighted, due, loading = unpack(call('HMGET', meta,
    'schema', 'fence', 'mode', 'largest_ttl', 'weighted', 'due', 'loading'))
  if schema ~= SCHEMA or mode ~= 'shared' or loading or weighted ~= '0' or ttl_us + 0 < 1
    or ttl_us + 0 > largest_ttl + 0 or (tonumber(due) or 0) <= now then
    break
  end
  local paused, note = unpack(call('HMGET', string.sub(meta, 1, -5) .. 'orders', '*', '.'))
  local number = fence + 1
  if paused or not note or number < 1 or number > LONGEST or shun and call('EXISTS', shun) == 1
    or call('HGET', requests, one) then
    break
  end
  local id = call('ZRANGE', ready, '0', '0')[1]
  local share = id and call('ZSCORE', uses, id)
  if not share or not may('HSET', meta, '', '') then
    break
  end
  local strike, fenced = call('HGET', strikes, id), format('%d', number)
  share = format('%.17g', floor(share) + 1.5)
  call('ZADD', uses, share, id)
  call('ZADD', ready, share, id)
  call('HSET', meta, 'fence', fenced)
  return {'granted', '1', id, fenced, strike and match(strike, '^(%d+):%d+$') or '0', '0'}
until true
