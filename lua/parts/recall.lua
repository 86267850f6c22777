-- What a token's record is worth now: 'lease' with the grant, 'tombstone', or nothing. A lease
-- that has run out is taken back, and a tombstone that has lapsed forgotten.
local function recall(one, record, by_share)
  if not record then
    return nil
  end
  local till = string.match(record, '^cancelled:(%d+)$')
  if till and tonumber(till) > now then
    return 'tombstone'
  elseif till then
    check_types()
    call('ZREM', cancelled, one)
    call('HDEL', requests, one)
    return nil
  end
  local fence, _, _, id = read(record)
  local deadline = id and call('ZSCORE', leases, id)
  if deadline and tonumber(deadline) > now then
    return 'lease', {id = id, fence = fence, left = deadline - now}
  elseif deadline then
    check_types()
    reclaim({id, deadline}, by_share)
  end
  return nil
end
