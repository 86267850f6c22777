-- Picks ready endpoints for a request with exclusions, shuns, a preference or a random start.
local function choice(excluded, exclusions, shun)
  local ready, cooling, leases = KEYS[2], KEYS[3], KEYS[4]
  -- Most endpoints looked at from the head while those are excluded or shunned; and from elsewhere.
  local SCAN = 128
  -- How many more the call may look at in all.
  local left = 2 * SCAN
  local choose, found, taken = {}, {}, {}
  -- The end of the first shun that was met.
  local soonest

  local function sooner(till)
    soonest = math.min(soonest or till, till)
  end

  -- Takes those of some endpoints that the request may have, until there are `most`.
  local function take(ids, most)
    local rests = shun and #ids > 0 and call('ZMSCORE', shun, unpack(ids)) or {}
    for nth, id in ipairs(ids) do
      local rest = tonumber(rests[nth] or 0)
      if rest > now and not excluded[id] then
        sooner(rest)
      elseif #found < most and not excluded[id] and not taken[id] then
        found[#found + 1], taken[id] = id, true
      end
    end
  end

  -- Looks at `bound` of the ready at most, from position `from` on.
  local function scan(from, bound, most)
    local width = most - #found
    bound = math.min(bound, left)
    while #found < most and bound > 0 do
      width = math.min(bound, width)
      local ids = call('ZRANGE', ready, from, from + width - 1)
      left = left - width
      take(ids, most)
      if #ids < width then
        return
      end
      from, bound, width = from + width, bound - width, 16
    end
  end

  -- Up to `most`, first the preferred one.
  function choose.first(most, prefer, random)
    if prefer ~= '' and call('ZSCORE', ready, prefer) then
      take({prefer}, most)
    end
    scan(0, SCAN, most)
    local rest = #found < most and call('ZCARD', ready) - SCAN or 0
    if rest > 0 then
      -- Too many at the head are not for this request: on from where the client's number says.
      local at = floor(random / 4294967296 * rest)
      scan(SCAN + at, SCAN, most)
      scan(SCAN, math.min(at, SCAN + at - rest), most)
    end
    return found
  end

  -- The same, each from a place of its own.
  function choose.random(most, prefer, random)
    if prefer ~= '' and call('ZSCORE', ready, prefer) then
      take({prefer}, most)
    end
    local all = call('ZCARD', ready)
    for nth = #found + 1, math.min(most, all) do
      local start = floor(random / 4294967296 * all)
      scan(start, left, nth)
      scan(0, math.min(left, start), nth)
      -- Numbers that the client's one number leads to (Numerical Recipes' generator).
      random = (random * 1664525 + 1013904223) % 4294967296
    end
    return found
  end

  -- The answer when there are none: time to the next chance, and whether others have one now.
  function choose.none()
    for _, key in ipairs({leases, cooling}) do
      local first = call('ZRANGE', key, 0, exclusions, 'WITHSCORES')
      for nth = 1, #first, 2 do
        if not excluded[first[nth]] then
          sooner(tonumber(first[nth + 1]))
          break
        end
      end
    end
    local wait = soonest and text(math.max(soonest - now, 0)) or ''
    return {'empty', wait, call('ZCARD', ready) > 0 and '1' or '0'}
  end

  return choose
end
