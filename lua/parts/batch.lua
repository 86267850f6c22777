-- The ids from argument `first` to the last, as a set.
local function ids_at(first)
  local ids = {}
  if #ARGV - first >= 256 then
    refuse('too many ids')
  end
  for nth = first, #ARGV do
    ids[name(ARGV[nth])] = true
  end
  return ids
end

-- Clears away what time has ended, and tells when there is more.
local function catch_up(by_share)
  local _, _, due = sweeper(moves(by_share)).pool()
  return due
end

-- What a token's record is worth now.
local function recall(token, record, by_share)
  return sweeper(moves(by_share)).recall(token, record)
end

-- The answer when no token has a grant.
local function refused(barred, asked, paused, held, none)
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
