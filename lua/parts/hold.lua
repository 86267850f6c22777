-- The end of the failover hold, if one is on. A server that is not the one of the last call may
-- lack grants of before: it grants nothing until the longest of them has run out.
local function hold(wanted, identity, till, largest_ttl)
  if wanted ~= 'on' then
    return nil
  end
  local here = string.match(call('INFO', 'replication'), 'master_replid:(%x+)') or ''
  if here ~= identity then
    check_types()
    till = now + largest_ttl
    call('HSET', meta, 'identity', here, 'hold_until', text(till))
  end
  till = tonumber(till)
  return till > now and till or nil
end
