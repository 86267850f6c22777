-- Whether the pool is paused, and the note that stands among its orders.
local orders = string.sub(KEYS[1], 1, -5) .. 'orders'
local paused, note = unpack(call('HMGET', orders, '*', '.'))

-- The endpoints that the request excludes, as a set, and their number.
local excluded, exclusions = {}, #ARGV - 5 - asked
if exclusions > 0 then
  excluded = rare().ids_at(6 + asked)
end

-- What tokens have already: grants (id, fence, time left), positions of those without one, number
-- of those barred.
local grants, wants, barred = {}, {}, 0
local function recalled(requests, by_share)
  for nth, record in ipairs(call('HMGET', requests, unpack(tokens))) do
    local worth = nil
    if record then
      worth, grants[nth] = rare().recall(tokens[nth], record, by_share)
    end
    if worth == 'tombstone' then
      barred = barred + 1
    elseif not worth then
      wants[#wants + 1] = nth
    end
  end
end

-- The answer to those tokens that have a grant.
local function told(strikes)
  local ids, reply, at = {}, {'granted'}, 1
  for nth = 1, asked do
    ids[#ids + 1] = grants[nth] and grants[nth][1]
  end
  local struck = call('HMGET', strikes, unpack(ids))
  for nth = 1, asked do
    local grant = grants[nth]
    if grant then
      local record = struck[(at + 4) / 5]
      reply[at + 1], reply[at + 2], reply[at + 3] = text(nth), grant[1], grant[2]
      reply[at + 4] = record and string.match(record, '^(%d+):%d+$') or '0'
      reply[at + 5] = grant[3]
      at = at + 5
    end
  end
  return reply
end
