-- The tokens from argument `first` on, each named once.
local function tokens_at(first, number)
  local tokens, seen = {}, {}
  for nth = 1, number do
    local one = token(ARGV[first + nth - 1])
    if seen[one] then
      refuse('token named twice')
    end
    tokens[nth], seen[one] = one, true
  end
  return tokens
end

-- The ids from argument `first` to the last, as a set, and their number.
local function ids_at(first)
  local ids, number = {}, #ARGV - first + 1
  if number > 2 * SCAN then
    refuse('too many ids')
  end
  for nth = first, #ARGV do
    ids[name(ARGV[nth])] = true
  end
  return ids, number
end

-- The shares of endpoints after one more assignment each, with their ids.
local function raised(ids, weighted)
  local shares = call('ZMSCORE', uses, unpack(ids))
  local weight = weighted and call('HMGET', weights, unpack(ids)) or {}
  local items = {}
  for nth, id in ipairs(ids) do
    local heavy = weight[nth] or 1
    items[2 * nth - 1] = share_of(assignments(shares[nth], heavy) + 1, heavy)
    items[2 * nth] = id
  end
  return items
end

-- The answer to those tokens that have a grant: id, fence and time left.
local function told(grants, number)
  local ids, reply = {}, {'granted'}
  for nth = 1, number do
    ids[#ids + 1] = grants[nth] and grants[nth].id
  end
  local struck = call('HMGET', strikes, unpack(ids))
  for nth = 1, number do
    local grant, at = grants[nth], #reply
    if grant then
      reply[at + 1], reply[at + 2], reply[at + 3] = tostring(nth), grant.id, text(grant.fence)
      reply[at + 4] = string.match(struck[(at + 4) / 5] or '0', '^%d+')
      reply[at + 5] = text(grant.left)
    end
  end
  return reply
end

-- The answer when no token has a grant.
local function refused(barred, asked, paused, held, excluded, exclusions)
  if barred == asked then
    return {'cancelled'}
  elseif paused then
    return {'paused'}
  elseif held then
    return {'hold', text(held - now)}
  end
  return empty(excluded, exclusions)
end
