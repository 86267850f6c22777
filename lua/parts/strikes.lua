-- Counts strikes: one for holders that fail at once, and a success ends only those from before
-- its grant.
local function judge(id, fence, strike, record, last)
  local count, struck_at = string.match(record or '', '^(%d+):(%d+)$')
  count, struck_at = count or '0', struck_at or '0'
  if tonumber(struck_at) >= tonumber(fence) then
    return
  elseif strike == 'add' then
    count, struck_at = text(math.min(count + 1, 4294967295)), last
  elseif strike == 'keep' or count == '0' then
    return
  else
    count = '0'
  end
  call('HSET', KEYS[12], id, count .. ':' .. struck_at)
end

-- Lets a pair rest, and forgets some that have rested.
local function shun(key, id, rest)
  local till = now + rest
  for _, over in ipairs(call('ZRANGE', key, '-inf', stamp, 'BYSCORE', 'LIMIT', 0, 64)) do
    call('ZREM', key, over)
  end
  call('ZADD', key, 'GT', text(till), id)
  -- The key goes with its last pair: it is advice, and no state.
  local gone = text(math.ceil(till / 1000))
  call('PEXPIREAT', key, gone, 'NX')
  call('PEXPIREAT', key, gone, 'GT')
end
