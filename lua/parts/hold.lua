-- Until when nothing is granted after a failover. A server that is not that of the last call may
-- lack grants of before: the longest of them has run out then, and no fence is theirs again.
local function hold(info, largest_ttl)
  moves().check_types()
  local here = string.match(info, 'master_replid:(%x+)') or ''
  call('HSET', KEYS[1], 'identity', here, 'hold_until', text(now + largest_ttl),
    'fence', text(call('HGET', KEYS[1], 'fence') + MOST_LOST))
  return now + largest_ttl
end
