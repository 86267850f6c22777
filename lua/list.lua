-- Tells a page of members in order of their ids.
--
-- KEYS: meta cooling leases parked members uses weights strikes
-- ARGV: orders after? limit
-- Replies:
--   members (id place left_us order? weight assignments strikes)*
--   uninitialised
--   too_new schema
local meta, cooling, leases, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local members, uses, weights, strikes = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local orders, after, limit = ARGV[1], ARGV[2], integer(ARGV[3], 0, 1000, 'limit')

local shut = closed(call('HGET', meta, 'schema'))
if shut then
  return shut
end
local from = after == '' and '-' or '(' .. name(after)
local ids = call('ZRANGE', members, from, '+', 'BYLEX', 'LIMIT', 0, limit)
if #ids == 0 then
  return {'members'}
end
local cools, deadlines = call('ZMSCORE', cooling, unpack(ids)), call('ZMSCORE', leases, unpack(ids))
local reasons, standing = call('HMGET', parked, unpack(ids)), call('HMGET', orders, unpack(ids))
local shares, weight = call('ZMSCORE', uses, unpack(ids)), call('HMGET', weights, unpack(ids))
local struck = call('HMGET', strikes, unpack(ids))

local reply = {'members'}
for nth, id in ipairs(ids) do
  local place, order, till = reasons[nth] or 'ready', standing[nth] or '', now
  if deadlines[nth] then
    place, till = 'leased', deadlines[nth]
  elseif cools[nth] then
    place, till = 'cooling', cools[nth]
  end
  -- A quarantine that was ordered for the end of a lease has been carried out.
  if place ~= 'leased' and string.sub(order, 1, 11) == 'quarantine:' then
    order = ''
  end
  local count = floor((shares[nth] or 0.5) * (weight[nth] or 1))
  for _, word in ipairs({
    id, place, text(math.max(till - now, 0)), order, weight[nth] or '1', text(count),
    string.match(struck[nth] or '0', '^%d+'),
  }) do
    reply[#reply + 1] = word
  end
end
return reply
