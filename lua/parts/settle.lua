-- Readies endpoints: by their shares where the pool goes by those, else by the time since which
-- they have been available.
local function make_ready(ids, since, by_share)
  if #ids == 0 then
    return
  end
  local ranks = by_share and call('ZMSCORE', uses, unpack(ids)) or since
  local items = {}
  for nth, id in ipairs(ids) do
    items[2 * nth - 1], items[2 * nth] = ranks[nth] or '0.5', id
  end
  call('ZADD', ready, unpack(items))
end

-- Takes members out of the pool, and keeps their counts for a return.
local function forget(ids)
  if #ids == 0 then
    return
  end
  local shares = call('ZMSCORE', uses, unpack(ids))
  local weight = call('HMGET', weights, unpack(ids))
  local counts = {}
  for nth, id in ipairs(ids) do
    counts[2 * nth - 1] = id
    counts[2 * nth] = text(assignments(shares[nth], weight[nth]))
  end
  call('HSET', former, unpack(counts))
  call('ZREM', members, unpack(ids))
  call('ZREM', uses, unpack(ids))
  call('HDEL', weights, unpack(ids))
  call('HDEL', strikes, unpack(ids))
  call('HSET', meta, 'weighted', call('HLEN', weights))
end

-- Places endpoints whose leases have ended; standing orders come before all else. For each:
-- order, quarantine code and the time from which it may be leased.
local function settle(ids, standing, codes, ready_at, by_share)
  local free, since, cool, park, gone = {}, {}, {}, {}, {}
  for nth, id in ipairs(ids) do
    local order, code = standing[nth], codes[nth]
    -- Those of one call keep their order.
    local rank = text(ready_at[nth] + nth - 1)
    if order == 'remove' then
      gone[#gone + 1] = id
    elseif order and string.sub(order, 1, 11) == 'quarantine:' then
      park[#park + 1], park[#park + 2] = id, 'quarantined:' .. string.sub(order, 12)
    elseif code then
      park[#park + 1], park[#park + 2] = id, 'quarantined:' .. code
    elseif order then
      park[#park + 1], park[#park + 2] = id, 'disabled'
    elseif ready_at[nth] > now then
      cool[#cool + 1], cool[#cool + 2] = rank, id
    else
      free[#free + 1], since[#since + 1] = id, rank
    end
  end
  make_ready(free, since, by_share)
  put('ZADD', cooling, cool)
  put('HSET', parked, park)
  forget(gone)
end
