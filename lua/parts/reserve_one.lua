-- A slot of a site that has had no pause, at the rate of the last one, and a place for it if it is
-- due: what most calls are. Any other leaves this before it writes, and is asked for below as if it
-- had not been here.
repeat
  local interval, burst, probe_us, empty, most, passage, hold, more = unpack(ARGV)
  local bucket, passages = unpack(KEYS)
  local numbers = empty == '0' and interval .. burst .. probe_us
  if most then
    numbers = numbers and passages and hold and not more and #passage == 32
      and not find(passage, '%X') and numbers .. most .. hold
  end
  if not numbers or #numbers > 60 or not find(numbers, '^%d+$') or interval == '' or burst == ''
    or probe_us == '' or most == '' or hold == '' or #probe_us > 15 or probe_us + 0 < 1 then
    break
  elseif most and (#most > 15 or #hold > 15 or most + 0 < 1 or hold + 0 < 1) then
    break
  end
  local ahead = interval * burst
  local state = call('GET', bucket) or '0:0:' .. interval
  local written, tat, pace = string.match(state, '^(%d+):(%d+):(%d+)$')
  if ahead < 1 or ahead > LONGEST or pace ~= interval or written + 0 > now then
    break
  end
  tat = max(tat + 0, now)
  local slot, ends = max(now, tat - ahead + interval), tat + interval
  local enters = most and slot == now
  if enters and (call('ZCOUNT', passages, '(' .. stamp, '+inf') >= most + 0
    or not redis.acl_check_cmd('ZREMRANGEBYSCORE', passages, '', '')
    or not redis.acl_check_cmd('ZADD', passages, '', '')
    or not redis.acl_check_cmd('PEXPIRE', passages, '')) then
    break
  elseif most and not enters then
    -- A key of another kind is told before the slot is charged.
    call('ZCARD', passages)
  end
  local told = format('%d', ends)
  call('SET', bucket, stamp .. ':' .. told .. ':' .. interval,
    'PX', math.ceil((ends - now) / 1000) + MARGIN_MS)
  if enters then
    local keep = format('%d', math.ceil(hold / 1000) + MARGIN_MS)
    call('ZREMRANGEBYSCORE', passages, '-inf', stamp)
    call('ZADD', passages, format('%d', now + hold), passage)
    -- A ttl that there is becomes longer and never shorter.
    local _ = call('PEXPIRE', passages, keep, 'GT') == 1 or call('PEXPIRE', passages, keep, 'NX')
  end
  local wait = slot > now and format('%d', slot - now) or '0'
  return {'reserved', wait, told, '0', '0', enters and '1' or '0', '0'}
until true
