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
local ttl = integer(ARGV[1], 1, LONGEST, 'ttl')
local random = integer(ARGV[2], 0, WORD - 1, 'random')
local prefer = ARGV[3]
local tokens = tokens_at(5, integer(ARGV[4], 1, BATCH, 'tokens'))
local excluded, exclusions = ids_at(5 + #tokens)
local shun = KEYS[14]

local schema, fence, mode, largest_ttl, weighted =
  unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'largest_ttl', 'weighted'))
local shut = closed(schema) or mode ~= 'shared' and {'exclusive'}
  or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl}
if shut then
  return shut
end
local paused = call('HGET', orders, '*')
sweep(true)

local wants, barred = {}, 0
for nth, record in ipairs(call('HMGET', requests, unpack(tokens))) do
  if recall(tokens[nth], record, true) == 'tombstone' then
    barred = barred + 1
  else
    wants[#wants + 1] = nth
  end
end
local picked = {}
if #wants > 0 and not paused then
  -- A preferred one takes all; otherwise no more than one endpoint a token is needed.
  picked = pick(#wants, prefer, random, false, excluded, shun)
  if picked[1] == prefer then
    picked = {prefer}
  end
end
if #picked == 0 then
  return refused(barred, #tokens, paused, nil, excluded, exclusions)
end

local shares = call('ZMSCORE', uses, unpack(picked))
local weight = weighted ~= '0' and call('HMGET', weights, unpack(picked)) or {}
for nth, share in ipairs(shares) do
  shares[nth] = tonumber(share or 0.5)
end
local grants = {}
for turn, nth in ipairs(wants) do
  local least = least_of(picked, shares)
  local heavy = weight[least] or 1
  shares[least] = (assignments(shares[least], heavy) + 1.5) / heavy
  grants[nth] = {id = picked[least], fence = fence + turn, left = 0}
end
local reply, items = told(grants, #tokens), {}
for nth, share in ipairs(shares) do
  items[2 * nth - 1], items[2 * nth] = string.format('%.17g', share), picked[nth]
end
call('ZADD', uses, unpack(items))
call('ZADD', ready, unpack(items))
call('HSET', meta, 'fence', text(fence + #wants))
return reply
