-- The tokens from argument `first` on, 1 to 16, each named once; the number is before them.
local function tokens_at(first)
  local asked = integer(ARGV[first - 1], 1, 16, 'tokens')
  local tokens, seen = {}, {}
  for nth = 1, asked do
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
  if number > 256 then
    refuse('too many ids')
  end
  for nth = first, #ARGV do
    ids[name(ARGV[nth])] = true
  end
  return ids, number
end

-- The answer to those of `number` tokens that have a grant: id, fence and time left.
local function told(grants, number, strikes)
  local ids, reply, at = {}, {'granted'}, 1
  for nth = 1, number do
    ids[#ids + 1] = grants[nth] and grants[nth][1]
  end
  local struck = call('HMGET', strikes, unpack(ids))
  for nth = 1, number do
    local grant = grants[nth]
    if grant then
      local record = struck[(at + 4) / 5]
      reply[at + 1], reply[at + 2], reply[at + 3] = tostring(nth), grant[1], grant[2]
      reply[at + 4] = record and string.match(record, '^%d+') or '0'
      reply[at + 5] = grant[3]
      at = at + 5
    end
  end
  return reply
end

-- What tokens have already: grants, positions of those without one, number of those barred.
local function recalled(tokens, by_share)
  local grants, wants, barred = {}, {}, 0
  for nth, record in ipairs(call('HMGET', KEYS[6], unpack(tokens))) do
    local worth = nil
    if record then
      worth, grants[nth] = sweeper(moves(by_share)).recall(tokens[nth], record)
    end
    if worth == 'tombstone' then
      barred = barred + 1
    elseif not worth then
      wants[#wants + 1] = nth
    end
  end
  return grants, wants, barred
end

-- Clears away what time has ended, if there is any.
local function catch_up(by_share)
  local due = call('ZCOUNT', KEYS[4], '-inf', stamp) + call('ZCOUNT', KEYS[3], '-inf', stamp)
  if due > 0 then
    local move = moves(by_share)
    move.check_types()
    sweeper(move).pool()
  end
end

-- The answer when no token has a grant.
local function refused(barred, asked, paused, held, none)
  return barred == asked and {'cancelled'} or paused and {'paused'}
    or held > now and {'hold', text(held - now)} or none()
end

-- The shares of endpoints after one more assignment each, with their ids.
local function raised(ids, uses, weights)
  local shares, scores = call('ZMSCORE', uses, unpack(ids)), {}
  for nth, weight in ipairs(call('HMGET', weights, unpack(ids))) do
    local count = floor((shares[nth] or 0.5) * (weight or 1))
    scores[2 * nth - 1] = string.format('%.17g', (count + 1.5) / (weight or 1))
    scores[2 * nth] = ids[nth]
  end
  return scores
end
