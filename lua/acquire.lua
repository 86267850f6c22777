-- Leases up to one endpoint a token, in an exclusive pool. A token that has a valid lease gets
-- that one. At most 256 of the ready are looked at while they are excluded or shunned.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former shun?
-- ARGV: ttl_us cooldown_us random prefer tokens token+ exclude*
-- Replies:
--   granted (nth id fence strikes left_us)+
--   empty next_us? restricted
--   paused
--   hold left_us
--   cancelled
--   shared
--   ttl_too_large largest_us
--   uninitialised
--   too_new schema
local ttl = integer(ARGV[1], 1, LONGEST, 'ttl')
local cooldown = integer(ARGV[2], 0, LONGEST, 'cooldown')
local random = integer(ARGV[3], 0, WORD - 1, 'random')
local prefer = ARGV[4]
local tokens = tokens_at(6, integer(ARGV[5], 1, BATCH, 'tokens'))
local excluded, exclusions = ids_at(6 + #tokens)
local shun = KEYS[14]

local schema, fence, mode, policy, largest_ttl, weighted, failover_hold, identity, hold_until =
  unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'policy', 'largest_ttl', 'weighted',
    'failover_hold', 'identity', 'hold_until'))
local shut = closed(schema) or mode ~= 'exclusive' and {'shared'}
  or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl}
if shut then
  return shut
end
local by_share = policy == 'least_assigned'
local paused = call('HGET', orders, '*')
local held = hold(failover_hold, identity, hold_until, largest_ttl)
sweep(by_share)

local grants, wants, barred = {}, {}, 0
for nth, record in ipairs(call('HMGET', requests, unpack(tokens))) do
  local state, grant = recall(tokens[nth], record, by_share)
  if state == 'lease' then
    grants[nth] = grant
  elseif state == 'tombstone' then
    barred = barred + 1
  else
    wants[#wants + 1] = nth
  end
end
local picked = {}
if #wants > 0 and not paused and not held then
  picked = pick(#wants, prefer, random, policy == 'random', excluded, shun)
end
for nth, id in ipairs(picked) do
  grants[wants[nth]] = {id = id, fence = fence + nth, left = ttl}
end
if not next(grants) then
  return refused(barred, #tokens, paused, held, excluded, exclusions)
end

local reply = told(grants, #tokens)
if #picked > 0 then
  local shares, owner, record, deadline = raised(picked, weighted ~= '0'), {}, {}, {}
  for nth, id in ipairs(picked) do
    local one = tokens[wants[nth]]
    owner[2 * nth - 1], owner[2 * nth] = id, one
    record[2 * nth - 1] = one
    record[2 * nth] = string.format('%.0f:%.0f:%.0f:%s', fence + nth, now, cooldown, id)
    deadline[2 * nth - 1], deadline[2 * nth] = text(now + ttl), id
  end
  -- The one key that was not read comes first: if it is of another type nothing is written.
  call('HSET', owners, unpack(owner))
  call('HSET', requests, unpack(record))
  call('ZADD', leases, unpack(deadline))
  call('ZREM', ready, unpack(picked))
  call('ZADD', uses, unpack(shares))
  call('HSET', meta, 'fence', text(fence + #picked))
end
return reply
