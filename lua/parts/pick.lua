-- Most endpoints looked at from either start while those are excluded or shunned.
local SCAN = 128
local WORD = 4294967296

-- The end of the first shun that was met.
local soonest

local function sooner(time)
  soonest = math.min(soonest or time, time)
end

-- Those of some endpoints that the request may have.
local function admitted(ids, excluded, shun)
  local rests = shun and call('ZMSCORE', shun, unpack(ids)) or {}
  local admits = {}
  for nth, id in ipairs(ids) do
    local rest = tonumber(rests[nth] or 0)
    if not excluded[id] then
      if rest > now then
        sooner(rest)
      else
        admits[#admits + 1] = id
      end
    end
  end
  return admits
end

-- Adds to `found` from position `from` of the ready on, until it has `most`; at most `bound` are
-- looked at.
local function scan(from, bound, found, most, excluded, shun)
  local width = most - #found
  while #found < most and bound > 0 do
    width = math.min(bound, width)
    local ids = call('ZRANGE', ready, from, from + width - 1)
    for _, id in ipairs(#ids > 0 and admitted(ids, excluded, shun) or ids) do
      if #found < most then
        found[#found + 1] = id
        excluded[id] = true
      end
    end
    if #ids < width then
      return
    end
    from, bound, width = from + width, bound - width, BATCH
  end
end

-- Picks up to `most` ready endpoints, at random or in order; the client's number says where to
-- start, and where to go on when too many at the head are not for this request.
local function pick(most, prefer, random, by_random, excluded, shun)
  local found = {}
  if prefer ~= '' and call('ZSCORE', ready, prefer) then
    found = admitted({prefer}, excluded, shun)
    excluded[prefer] = true
  end
  if not by_random then
    scan(0, SCAN, found, most, excluded, shun)
    local rest = #found < most and call('ZCARD', ready) - SCAN or 0
    if rest > 0 then
      scan(SCAN + floor(random / WORD * rest), SCAN, found, most, excluded, shun)
    end
    return found
  end
  local all = call('ZCARD', ready)
  for nth = #found + 1, most do
    local start = floor(random / WORD * all)
    scan(start, SCAN, found, nth, excluded, shun)
    scan(0, math.min(SCAN, start), found, nth, excluded, shun)
    -- Numbers that the client's one number leads to (Numerical Recipes' generator).
    random = (random * 1664525 + 1013904223) % WORD
  end
  return found
end

-- The answer when nothing was picked: time to the next chance, and whether others have one now.
local function empty(excluded, number)
  for _, key in ipairs({leases, cooling}) do
    local first = call('ZRANGE', key, 0, number, 'WITHSCORES')
    for nth = 1, #first, 2 do
      if not excluded[first[nth]] then
        sooner(tonumber(first[nth + 1]))
        break
      end
    end
  end
  local next = soonest and text(math.max(soonest - now, 0)) or ''
  return {'empty', next, call('ZCARD', ready) > 0 and '1' or '0'}
end
