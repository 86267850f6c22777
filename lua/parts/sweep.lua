local SWEEP = 64

-- The first of those whose time has come, each with its time.
local function due(key, most)
  return call('ZRANGE', key, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
end

local function split(pairs_of)
  local ids, scores = {}, {}
  for nth = 1, #pairs_of / 2 do
    ids[nth], scores[nth] = pairs_of[2 * nth - 1], pairs_of[2 * nth]
  end
  return ids, scores
end

-- What a lease's record says: fence, time of the grant, cooldown for expiry, id.
local function read(record)
  return string.match(record or '', '^(%d+):(%d+):(%d+):(.+)$')
end

-- Takes back leases past their deadline; the cooldown counts from there.
local function reclaim(expired, by_share)
  if #expired == 0 then
    return
  end
  local ids, ready_at = split(expired)
  local tokens = call('HMGET', owners, unpack(ids))
  for nth = 1, #ids do
    tokens[nth] = tokens[nth] or ''
  end
  local records = call('HMGET', requests, unpack(tokens))
  local standing = call('HMGET', orders, unpack(ids))
  for nth, deadline in ipairs(ready_at) do
    local _, _, cooldown = read(records[nth])
    ready_at[nth] = deadline + (cooldown or 0)
  end
  call('HDEL', owners, unpack(ids))
  call('HDEL', requests, unpack(tokens))
  call('ZREM', leases, unpack(ids))
  settle(ids, standing, {}, ready_at, by_share)
end

-- Takes back expired leases and readies what has cooled, at most SWEEP of each.
local function sweep(by_share)
  local expired, cooled = due(leases, SWEEP), due(cooling, SWEEP)
  if #expired + #cooled > 0 then
    check_types()
    reclaim(expired, by_share)
    local ids, since = split(cooled)
    put('ZREM', cooling, ids)
    make_ready(ids, since, by_share)
  end
  return #expired / 2, #cooled / 2
end

-- Forgets tombstones whose time has come, at most SWEEP.
local function sweep_tombstones()
  local lapsed = call('ZRANGE', cancelled, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, SWEEP)
  put('HDEL', requests, lapsed)
  put('ZREM', cancelled, lapsed)
end
