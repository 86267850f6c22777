-- Tells a page of members in order of their ids.
--
-- KEYS: meta ready cooling leases parked members uses weights strikes
-- ARGV: orders after? limit
-- Replies:
--   members (id place left_us order? weight assignments strikes)*
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local members, uses, weights, strikes = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
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
local readied = call('ZMSCORE', ready, unpack(ids))
local cools, deadlines = call('ZMSCORE', cooling, unpack(ids)), call('ZMSCORE', leases, unpack(ids))
local reasons, standing = call('HMGET', parked, unpack(ids)), ordered(orders, ids)
local shares, weight = call('ZMSCORE', uses, unpack(ids)), call('HMGET', weights, unpack(ids))
local struck = call('HMGET', strikes, unpack(ids))

local reply = {'members'}
for nth, id in ipairs(ids) do
  -- In no place is what only damage leaves.
  local place, order, till = readied[nth] and 'ready' or 'lost', standing[nth] or '', now
  if deadlines[nth] then
    place, till = 'leased', deadlines[nth]
  elseif cools[nth] then
    place, till = 'cooling', cools[nth]
  elseif string.find(reasons[nth] or '', '^quarantined:%l') or reasons[nth] == 'disabled' then
    place = reasons[nth]
  end
  -- A quarantine that was ordered for the end of a lease is told where nothing else stands, and
  -- until it has been carried out.
  order = string.match(order, '^(%l+):quarantine:') or order
  if place ~= 'leased' and string.sub(order, 1, 11) == 'quarantine:' then
    order = ''
  end
  for _, word in ipairs({
    id, place, text(math.max(math.min(till - now, LONGEST), 0)), order, text(heft(weight[nth])),
    text(assignments(shares[nth], weight[nth])), string.match(struck[nth] or '', '^%d+') or '0',
  }) do
    reply[#reply + 1] = word
  end
end
return reply
