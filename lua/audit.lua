-- Tells a page of the trail of orders, newest first. It outlasts the pool.
--
-- KEYS: meta audit
-- ARGV: before? limit
-- Replies:
--   entries (id by? order version? at_us number ids?)*
--   uninitialised
--   too_new schema
local meta, trail = KEYS[1], KEYS[2]
local before, limit = ARGV[1], integer(ARGV[2], 1, 1000, 'limit')
if before ~= '' and not string.find(before, '^%d+%-%d+$') then
  refuse('before')
end

local schema = call('HGET', meta, 'schema')
local shut = (schema or call('EXISTS', trail) == 0) and closed(schema)
if shut then
  return shut
end
local from = before == '' and '+' or '(' .. before
local reply = {'entries'}
for _, entry in ipairs(call('XREVRANGE', trail, from, '-', 'COUNT', limit)) do
  local told = {}
  for nth = 1, #entry[2], 2 do
    told[entry[2][nth]] = entry[2][nth + 1]
  end
  for _, word in ipairs({
    entry[1], told.by or '', told.order or '', told.version or '', told.at or '0',
    told.number or '0', told.ids or '',
  }) do
    reply[#reply + 1] = word
  end
end
return reply
