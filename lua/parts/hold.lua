-- Until when nothing is granted after a failover. A server that is not that of the last call may
-- lack grants of before: the longest of them has run out then, and no fence is theirs again.
local function hold(meta, identity, till, largest_ttl)
  local info = call('INFO', 'replication')
  if string.find(info, 'master_replid:' .. identity, 1, true) then
    return tonumber(till)
  end
  moves().check_types()
  local here = string.match(info, 'master_replid:(%x+)') or ''
  call('HSET', meta, 'identity', here, 'hold_until', text(now + largest_ttl),
    'fence', text(call('HGET', meta, 'fence') + MOST_LOST))
  return now + largest_ttl
end
