-- Assigns an endpoint to each token, in a shared pool: the least assigned one, counted and not
-- reserved. At most 256 of the ready are looked at while they are excluded or shunned.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
--   shun?
-- ARGV: ttl_us cooldown_us random prefer tokens token+ exclude*
-- Replies:
--   granted (nth id fence strikes left_us)+
--   empty next_us? restricted
--   paused
--   cancelled
--   exclusive
--   loading
--   ttl_too_large largest_us
--   uninitialised
--   too_new schema
local meta, ready, uses, weights, strikes = KEYS[1], KEYS[2], KEYS[10], KEYS[11], KEYS[12]
local requests, shun = KEYS[6], KEYS[13]
local rare = rare()

local schema, fence, mode, largest_ttl, due, loading =
  unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'largest_ttl', 'due', 'loading'))
local shut = closed(schema) or mode ~= 'shared' and {'exclusive'}
  or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl} or loading and {'loading'}
if shut then
  return shut
end
local _ = note or rare.ordered(orders, {})
fence = fence + 0
_ = fence >= 0 and fence <= LONGEST or refuse('fence')
if not ((tonumber(due) or 0) > now) then
  rare.catch_up(true)
end

recalled(requests, true)
local choose, picked = rare.choice(excluded, exclusions, shun), {}
if #wants > 0 and not paused then
  -- A preferred one takes all; otherwise no more than one endpoint a token is needed.
  picked = choose.first(#wants, prefer, random)
  if picked[1] == prefer then
    picked = {prefer}
  end
end
if #picked == 0 then
  return rare.refused(barred, asked, paused, 0, choose.none)
end

local shares, weight = call('ZMSCORE', uses, unpack(picked)), call('HMGET', weights, unpack(picked))
for nth, share in ipairs(shares) do
  shares[nth] = tonumber(share or 0.5)
end
local place = places(picked)
for turn, nth in ipairs(wants) do
  local least = least_of(shares, place)
  local heavy = rare.heft(weight[least])
  shares[least] = (floor(shares[least] * heavy) + 1.5) / heavy
  grants[nth] = {picked[least], text(fence + turn), '0'}
end
local reply, scores = told(strikes), {}
for nth, share in ipairs(shares) do
  scores[2 * nth - 1], scores[2 * nth] = format('%.17g', share), picked[nth]
end
rare.allowed(meta, {HSET = 2})
call('ZADD', uses, unpack(scores))
call('ZADD', ready, unpack(scores))
call('HSET', meta, 'fence', text(fence + #wants))
return reply
