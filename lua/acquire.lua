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
local meta, ready, leases, owners, requests = KEYS[1], KEYS[2], KEYS[4], KEYS[5], KEYS[6]
local uses, weights, strikes, shun = KEYS[10], KEYS[11], KEYS[12], KEYS[14]
local ttl_us, cooldown_us, prefer = ARGV[1], ARGV[2], ARGV[4]
local ttl = integer(ttl_us, 1, LONGEST, 'ttl')
integer(cooldown_us, 0, LONGEST, 'cooldown')
local random = integer(ARGV[3], 0, 4294967295, 'random')
local tokens = tokens_at(6)
local excluded, exclusions = ids_at(6 + #tokens)

local schema, fence, mode, policy, largest_ttl, weighted, failover_hold, identity, hold_until =
  unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'policy', 'largest_ttl', 'weighted',
    'failover_hold', 'identity', 'hold_until'))
local shut = closed(schema) or mode ~= 'exclusive' and {'shared'}
  or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl}
if shut then
  return shut
end
local paused = call('HGET', string.sub(meta, 1, -5) .. 'orders', '*')
local held = failover_hold == 'on' and hold(meta, identity, hold_until, largest_ttl) or 0
catch_up(policy == 'least_assigned')

local grants, wants, barred = recalled(tokens, policy == 'least_assigned')
local picked, choose = {}, nil
if #wants > 0 and not paused and held <= now then
  shun = shun and call('EXISTS', shun) == 1 and shun
  if shun or exclusions > 0 or prefer ~= '' or policy == 'random' then
    choose = choice(excluded, exclusions, shun)
    picked = choose[policy == 'random' and 'random' or 'first'](#wants, prefer, random)
  else
    picked = call('ZRANGE', ready, 0, #wants - 1)
  end
end
local owner, record, deadline, ends = {}, {}, {}, text(now + ttl)
for nth, id in ipairs(picked) do
  local left, right, token = 2 * nth - 1, 2 * nth, tokens[wants[nth]]
  local number = text(fence + nth)
  grants[wants[nth]] = {id, number, ttl_us}
  owner[left], owner[right], deadline[left], deadline[right] = id, token, ends, id
  record[left], record[right] = token, number .. ':' .. stamp .. ':' .. cooldown_us .. ':' .. id
end
if not next(grants) then
  return refused(barred, #tokens, paused, held, (choose or choice(excluded, exclusions, shun)).none)
end

local reply = told(grants, #tokens, strikes)
if #picked > 0 then
  local scores = weighted ~= '0' and raised(picked, uses, weights) or call('ZCARD', uses)
  allowed(meta, {ZADD = 2, ZREM = 1, ZINCRBY = 2})
  -- The one key that was not looked at comes first: if it is of another type nothing is written.
  call('HSET', owners, unpack(owner))
  call('HSET', requests, unpack(record))
  call('ZADD', leases, unpack(deadline))
  call('ZREM', ready, unpack(picked))
  if weighted ~= '0' then
    call('ZADD', uses, unpack(scores))
  else
    for _, id in ipairs(picked) do
      call('ZINCRBY', uses, 1, id)
    end
  end
  call('HSET', meta, 'fence', text(fence + #picked))
end
return reply
