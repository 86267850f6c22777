-- Leases up to one endpoint a token, in an exclusive pool. A token that has a valid lease gets
-- that one. At most 256 of the ready are looked at while they are excluded or shunned.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
--   shun?
-- ARGV: ttl_us cooldown_us random prefer tokens token+ exclude*
-- Replies:
--   granted (nth id fence strikes left_us)+
--   empty next_us? restricted
--   paused
--   hold left_us
--   cancelled
--   shared
--   loading
--   ttl_too_large largest_us
--   uninitialised
--   too_new schema
local wants, grants = nil, nil
if not usual then
  local answer = nil
  answer, wants, grants = rare.supply()
  if answer then
    return answer
  end
end
local reply, record, deadline = {'granted', '', '', '', '', ''}, {'', '', '', ''}, {'', ''}
local place =
  {'1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15', '16'}
local struck = picked[1] and call('HMGET', strikes, unpack(picked))
local tail, ends = ':' .. stamp .. ':' .. cooldown_us .. ':', format('%d', now + ttl)
for nth = 1, #picked do
  local id, number, at = picked[nth], format('%d', last + nth), wants and wants[nth] or nth
  local token, strike, word = tokens[at], struck[nth], 5 * nth
  reply[word - 3], reply[word - 2], reply[word - 1] = place[at], id, number
  reply[word] = strike and match(strike, '^(%d+):%d+$') or '0'
  reply[word + 1] = ttl_us
  record[4 * nth - 3], record[4 * nth - 2] = token, number .. tail .. id
  record[4 * nth - 1], record[4 * nth] = '@' .. id, token
  deadline[2 * nth - 1], deadline[2 * nth] = ends, id
end
if grants and next(grants) then
  reply = rare.merged(reply, #picked, grants)
end
if picked[1] then
  local raised = weighted ~= '0' and rare.raised(picked, uses, KEYS[11])
  local _ = raised or call('ZCARD', uses)
  local lacks = not may('HSET', meta, '', '') and 'HSET' or not may('ZREM', meta, '') and 'ZREM'
  if lacks then
    error({err = 'NOPERM ' .. lacks})
  end
  -- The one key that may not have been looked at comes first: an error there leaves nothing. A
  -- server searches a set from end to end while it is small and has no long member, which with
  -- some hundred leases would be a third of a batch's cost: it gets one for a moment.
  local many, long = #picked > 1, string.rep('-', 65)
  if many then
    deadline[2 * #picked + 1], deadline[2 * #picked + 2] = ends, long
  end
  call('ZADD', leases, unpack(deadline))
  local _ = many and call('ZREM', leases, long)
  call('HSET', requests, unpack(record))
  call('ZREM', ready, unpack(picked))
  _ = raised and call('ZADD', uses, unpack(raised))
  for nth = 1, raised and 0 or #picked do
    call('ZADD', uses, 'INCR', '1', picked[nth])
  end
  call('HSET', meta, 'fence', format('%d', last + #picked), 'due',
    tonumber(due) < now + ttl and due or ends)
end
return reply
