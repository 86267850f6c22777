-- Assigns an endpoint to each token, in a shared pool: the least assigned one, counted and not
-- reserved. At most 256 of the ready are looked at while they are excluded or shunned.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former shun?
-- ARGV: ttl_us random prefer tokens token+ exclude*
-- Replies:
--   granted (nth id fence strikes left_us)+
--   empty next_us? restricted
--   paused
--   cancelled
--   exclusive
--   ttl_too_large largest_us
--   uninitialised
--   too_new schema
local meta, ready, uses, weights, strikes = KEYS[1], KEYS[2], KEYS[10], KEYS[11], KEYS[12]
local shun, prefer = KEYS[14], ARGV[3]
local ttl = integer(ARGV[1], 1, LONGEST, 'ttl')
local random = integer(ARGV[2], 0, 4294967295, 'random')
local tokens = tokens_at(5)
local excluded, exclusions = ids_at(5 + #tokens)

local schema, fence, mode, largest_ttl =
  unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'largest_ttl'))
local shut = closed(schema) or mode ~= 'shared' and {'exclusive'}
  or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl}
if shut then
  return shut
end
local paused = call('HGET', string.sub(meta, 1, -5) .. 'orders', '*')
catch_up(true)

local grants, wants, barred = recalled(tokens, true)
local choose, picked = choice(excluded, exclusions, shun), {}
if #wants > 0 and not paused then
  -- A preferred one takes all; otherwise no more than one endpoint a token is needed.
  picked = choose.first(#wants, prefer, random)
  if picked[1] == prefer then
    picked = {prefer}
  end
end
if #picked == 0 then
  return refused(barred, #tokens, paused, 0, choose.none)
end

local shares, weight = call('ZMSCORE', uses, unpack(picked)), call('HMGET', weights, unpack(picked))
for nth, share in ipairs(shares) do
  shares[nth] = tonumber(share or 0.5)
end
for turn, nth in ipairs(wants) do
  local least = least_of(picked, shares)
  local heavy = weight[least] or 1
  shares[least] = (floor(shares[least] * heavy) + 1.5) / heavy
  grants[nth] = {picked[least], text(fence + turn), '0'}
end
local reply, scores = told(grants, #tokens, strikes), {}
for nth, share in ipairs(shares) do
  scores[2 * nth - 1], scores[2 * nth] = string.format('%.17g', share), picked[nth]
end
allowed(meta, {HSET = 2})
call('ZADD', uses, unpack(scores))
call('ZADD', ready, unpack(scores))
call('HSET', meta, 'fence', text(fence + #wants))
return reply
