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
local wants = {1}
if not usual then
  local answer = nil
  answer, wants = rare.spread()
  if answer then
    return answer
  end
end
local shares, scores = call('ZMSCORE', uses, unpack(picked)), {'', ''}
local weight = weighted ~= '0' and call('HMGET', weights, unpack(picked)) or {}
local struck = call('HMGET', strikes, unpack(picked))
local reply, place = {'granted', '', '', '', '', ''}, rare and rare.places(picked)
for nth = 1, #picked do
  shares[nth] = tonumber(shares[nth] or 0.5)
end
for turn = 1, #wants do
  local least, heavy, word = 1, 1, 5 * turn
  if rare then
    least = rare.least_of(shares, place)
    heavy = rare.heft(weight[least])
  end
  shares[least] = (floor(shares[least] * heavy) + 1.5) / heavy
  local strike = struck[least]
  reply[word - 3], reply[word - 2] = format('%d', wants[turn]), picked[least]
  reply[word - 1] = format('%d', last + turn)
  reply[word] = strike and match(strike, '^(%d+):%d+$') or '0'
  reply[word + 1] = '0'
end
for nth = 1, #picked do
  scores[2 * nth - 1], scores[2 * nth] = format('%.17g', shares[nth]), picked[nth]
end
if not may('HSET', meta, '', '') then
  error({err = 'NOPERM HSET'})
end
call('ZADD', uses, unpack(scores))
call('ZADD', ready, unpack(scores))
call('HSET', meta, 'fence', format('%d', last + #wants))
return reply
