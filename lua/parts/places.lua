-- How long a passage that has no place waits at most, if all are taken. Those whose deadline has
-- passed are free: their workers are dead.
local function wait_for_place(passages, most, passage)
  if #passage ~= 32 or string.find(passage, '%X') then
    refuse('passage')
  end
  call('ZREMRANGEBYSCORE', passages, '-inf', text(now))
  if call('ZCARD', passages) >= most and not call('ZSCORE', passages, passage) then
    return call('ZRANGE', passages, 0, 0, 'WITHSCORES')[2] - now
  end
end

local function take_place(passages, passage, hold)
  call('ZADD', passages, text(now + hold), passage)
  -- A ttl that there is becomes longer and never shorter.
  local keep = math.ceil(hold / 1000) + MARGIN_MS
  call('PEXPIRE', passages, keep, 'NX')
  call('PEXPIRE', passages, keep, 'GT')
end
