-- How long a passage that has no place waits at most, if all are taken. Those whose deadline has
-- passed are free: their workers are dead. A deadline that is further off than any can be is of
-- before the clock was set back, and comes nearer.
local function wait_for_place(passages, most, passage, hold)
  if #passage ~= 32 or string.find(passage, '%X') then
    refuse('passage')
  end
  local past, last = '(' .. stamp, now + hold
  if call('ZCOUNT', passages, past, '+inf') < most
    or tonumber(call('ZSCORE', passages, passage) or 0) > now
  then
    return nil
  end
  local far = call('ZRANGEBYSCORE', passages, '(' .. text(last), '+inf', 'LIMIT', 0, 4096)
  for nth = 1, #far do
    call('ZADD', passages, text(last), far[nth])
  end
  return call('ZRANGEBYSCORE', passages, past, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] - now
end

-- Ends the call when its user may not take places. It comes before the first write: a denial later
-- leaves half of it written.
local function may_take_place(passages)
  for command, least in pairs({ZREMRANGEBYSCORE = 2, ZADD = 2, PEXPIRE = 1}) do
    if not redis.acl_check_cmd(command, passages, unpack({'', ''}, 1, least)) then
      error({err = 'NOPERM ' .. command})
    end
  end
end

local function take_place(passages, passage, hold)
  call('ZREMRANGEBYSCORE', passages, '-inf', stamp)
  call('ZADD', passages, text(now + hold), passage)
  -- A ttl that there is becomes longer and never shorter.
  local keep = math.ceil(hold / 1000) + MARGIN_MS
  local _ = call('PEXPIRE', passages, keep, 'GT') == 1 or call('PEXPIRE', passages, keep, 'NX')
end
