-- Looks through some of one key for what is of no member, and for counts that are none. An order to
-- remove who is gone is none: it is forgotten by and by.
--
-- KEYS: meta former members weights strikes
-- ARGV: orders part cursor
-- Replies:
--   checked cursor? (finding id?)*
--   uninitialised
--   too_new schema
local meta, former, members, weights, strikes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local orders, part, cursor = ARGV[1], ARGV[2], ARGV[3]
local shut = closed(call('HGET', meta, 'schema'))
if shut then
  return shut
end

local keys = {orders = orders, weights = weights, strikes = strikes, former = former}
local page = call('HSCAN', keys[part] or refuse('part'), cursor, 'COUNT', 250)
for nth = 1, #page[2], 2 do
  local field, value = page[2][nth], page[2][nth + 1]
  local id = part == 'strikes' and string.match(field, '^@(.*)$') or field
  local stray = not call('ZSCORE', members, id)
  if part == 'former' then
    stray = not stray or not string.find(value, '^%d+$') or #value > 16
  elseif part == 'orders' then
    stray = stray and field ~= '*' and field ~= '.' and value ~= 'remove'
  end
  if stray then
    finding(part .. '_of_nobody', sense.id(id) and id)
  end
end
return {'checked', page[1] == '0' and '' or page[1], unpack(findings)}
