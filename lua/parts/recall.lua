-- The endpoints that the request excludes, as a set, and their number.
local function excluded()
  local ids = {}
  if #ARGV - 5 - asked > 256 then
    refuse('too many ids')
  end
  for nth = 6 + asked, #ARGV do
    ids[name(ARGV[nth])] = true
  end
  return ids, #ARGV - 5 - asked
end

-- Clears away what time has ended, and tells when there is more.
local function catch_up(by_share)
  local _, _, due = sweeper(moves(by_share)).pool()
  return due
end

-- What tokens have already: positions of those without a grant, grants as words of the reply by
-- position, number of those barred.
local function recalled(requests, strikes, by_share)
  local wants, grants, barred = {}, {}, 0
  for nth, record in ipairs(call('HMGET', requests, unpack(tokens))) do
    local worth, grant = nil, nil
    if record then
      worth, grant = sweeper(moves(by_share)).recall(tokens[nth], record)
    end
    if worth == 'lease' then
      local id, fence, left = unpack(grant)
      local count = match(call('HGET', strikes, id) or '', '^(%d+):%d+$')
      grants[nth] = {text(nth), id, fence, count or '0', left}
    elseif worth == 'tombstone' then
      barred = barred + 1
    else
      wants[#wants + 1] = nth
    end
  end
  return wants, grants, barred
end

-- The answer to tokens of which some had a grant before, in their order.
local function merged(reply, new, grants)
  for nth = 0, new - 1 do
    grants[tonumber(reply[5 * nth + 2])] = {unpack(reply, 5 * nth + 2, 5 * nth + 6)}
  end
  local whole = {'granted'}
  for nth = 1, asked do
    for _, word in ipairs(grants[nth] or {}) do
      whole[#whole + 1] = word
    end
  end
  return whole
end

-- The answer when no token has a grant.
local function refused(barred, paused, held, none)
  return barred == asked and {'cancelled'} or paused and {'paused'}
    or held > now and {'hold', text(math.min(held - now, LONGEST))} or none()
end

-- The shares of endpoints after one more assignment each, with their ids.
local function raised(ids, uses, weights)
  local shares, scores = call('ZMSCORE', uses, unpack(ids)), {}
  for nth, weight in ipairs(call('HMGET', weights, unpack(ids))) do
    scores[2 * nth - 1] = format('%.17g', (assignments(shares[nth], weight) + 1.5) / heft(weight))
    scores[2 * nth] = ids[nth]
  end
  return scores
end
