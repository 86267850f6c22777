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
local meta, ready, leases, requests = KEYS[1], KEYS[2], KEYS[4], KEYS[6]
local uses, weights, strikes, shun = KEYS[10], KEYS[11], KEYS[12], KEYS[13]

local schema, fence, mode, policy, largest_ttl, weighted, watched, identity, held, due, loading =
  unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'policy', 'largest_ttl', 'weighted',
    'failover_hold', 'identity', 'hold_until', 'due', 'loading'))
local shut = closed(schema) or mode ~= 'exclusive' and {'shared'}
  or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl} or loading and {'loading'}
if shut then
  return shut
end
local by_share, last = policy == 'least_assigned', fence + 0
local _ = last >= 0 and last <= LONGEST or refuse('fence')
local _ = note or rare().ordered(orders, {})
local info = watched == 'on' and call('INFO', 'replication')
local same = not info or string.find(info, 'master_replid:' .. identity, 1, true)
held = same and tonumber(held) or rare().hold(info, largest_ttl)
if not ((tonumber(due) or 0) > now) then
  due = rare().catch_up(by_share)
end
recalled(requests, by_share)
local picked, choose = {}, nil
if wants[1] and not paused and held <= now then
  shun = shun and call('EXISTS', shun) == 1 and shun
  if shun or exclusions > 0 or prefer ~= '' or policy == 'random' then
    choose = rare().choice(excluded, exclusions, shun)
    picked = choose[policy == 'random' and 'random' or 'first'](#wants, prefer, random)
  else
    picked = call('ZRANGE', ready, '0', text(#wants - 1))
  end
end
local record, deadline, ends = {}, {}, text(now + ttl)
local tail = ':' .. stamp .. ':' .. cooldown_us .. ':'
for nth, id in ipairs(picked) do
  local number, token, at = text(last + nth), tokens[wants[nth]], 4 * nth
  grants[wants[nth]] = {id, number, ttl_us}
  record[at - 3], record[at - 2] = token, number .. tail .. id
  record[at - 1], record[at] = '@' .. id, token
  deadline[2 * nth - 1], deadline[2 * nth] = ends, id
end
if not next(grants) then
  local none = (choose or rare().choice(excluded, exclusions, shun)).none
  return rare().refused(barred, asked, paused, held, none)
end
local reply = told(strikes)
if picked[1] then
  local raised = weighted ~= '0' and rare().raised(picked, uses, weights)
  local _ = raised or call('ZCARD', uses)
  local _ = may('HSET', meta, '', '') and may('ZREM', meta, '')
    or rare().allowed(meta, {HSET = 2, ZREM = 1})
  -- The one key that may not have been looked at comes first: an error there leaves nothing.
  call('ZADD', leases, unpack(deadline))
  call('HSET', requests, unpack(record))
  call('ZREM', ready, unpack(picked))
  local _ = raised and call('ZADD', uses, unpack(raised))
  for _, id in ipairs(raised and {} or picked) do
    call('ZADD', uses, 'INCR', '1', id)
  end
  call('HSET', meta, 'fence', text(last + #picked), 'due',
    tonumber(due) < now + ttl and due or ends)
end
return reply
