-- What moves endpoints from place to place. Made only by calls that need it: most do not, and
-- making functions is a good part of what a call costs.
local function moves(by_share)
  local meta, ready, cooling, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  local parked, members, uses, weights = KEYS[8], KEYS[9], KEYS[10], KEYS[11]
  local strikes, former = KEYS[12], KEYS[5]
  local types = {
    'hash', 'zset', 'zset', 'zset', 'hash', 'hash', 'zset', 'hash', 'zset', 'zset', 'hash', 'hash',
  }
  local move = {orders = string.sub(meta, 1, -5) .. 'orders'}

  local function check_type(key, expected)
    local found = call('TYPE', key).ok
    if found ~= expected and found ~= 'none' then
      error({err = 'WRONGTYPE a key of the pool holds another type'})
    end
  end

  -- Before a call writes to keys that it has not read: what an error leaves written stays so.
  function move.check_types()
    ordered(move.orders, {})
    allowed(meta, {
      EXISTS = 0, HDEL = 1, HGET = 1, HLEN = 0, HMGET = 1, HSCAN = 1, HSET = 2, PEXPIREAT = 1,
      ZADD = 2, ZCARD = 0, ZCOUNT = 2, ZMSCORE = 1, ZRANGE = 2, ZREM = 1, ZSCORE = 1,
    })
    for nth, key in ipairs(KEYS) do
      check_type(key, types[nth] or 'zset')
    end
  end

  function move.put(command, key, items)
    if #items > 0 then
      call(command, key, unpack(items))
    end
  end

  function move.share(count, weight)
    return format('%.17g', (count + 0.5) / weight)
  end

  -- Readies endpoints: by their shares where the pool goes by those, else by the time since which
  -- they have been available.
  function move.ready(ids, since)
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

  -- Sees to it that calls look for what has ended from then on.
  function move.expect(time)
    if time < (tonumber(call('HGET', meta, 'due')) or 0) then
      call('HSET', meta, 'due', text(time))
    end
  end

  -- Ids that come and go must not fill the memory: as many as come are forgotten.
  local function forget(coming)
    local over, cursor = call('HLEN', former) + coming - 100000, text(now % 131072)
    for _ = 1, 16 do
      if over <= 0 then
        return
      end
      local page, some = call('HSCAN', former, cursor, 'COUNT', text(math.min(over, 1024))), {}
      for nth = 1, #page[2], 2 do
        some[#some + 1] = page[2][nth]
      end
      cursor, over = page[1], over - (some[1] and call('HDEL', former, unpack(some)) or 0)
    end
  end

  -- Takes members out of the pool, and keeps their counts for a return.
  function move.out(ids)
    if #ids == 0 then
      return
    end
    local shares = call('ZMSCORE', uses, unpack(ids))
    local weight = call('HMGET', weights, unpack(ids))
    local counts, fields = {}, {}
    for nth, id in ipairs(ids) do
      counts[2 * nth - 1], counts[2 * nth] = id, text(assignments(shares[nth], weight[nth]))
      fields[2 * nth - 1], fields[2 * nth] = id, '@' .. id
    end
    forget(#ids)
    call('HSET', former, unpack(counts))
    call('ZREM', members, unpack(ids))
    call('ZREM', uses, unpack(ids))
    call('HDEL', weights, unpack(ids))
    call('HDEL', strikes, unpack(fields))
    call('HSET', meta, 'weighted', call('HLEN', weights))
  end

  -- Places endpoints whose leases have ended; standing orders come before all else. For each:
  -- order, quarantine code and the time from which it may be leased.
  function move.settle(ids, standing, codes, ready_at)
    local free, since, cool, park, gone, soonest = {}, {}, {}, {}, {}, nil
    for nth, id in ipairs(ids) do
      local order, code = standing[nth], codes[nth]
      -- An order to quarantine may stand behind one to disable, which outlasts it.
      code = order and string.match(order, 'quarantine:(.+)$') or code
      -- Those of one call keep their order.
      local at = ready_at[nth] + nth - 1
      if order == 'remove' then
        gone[#gone + 1] = id
      elseif code then
        park[#park + 1], park[#park + 2] = id, 'quarantined:' .. code
      elseif order then
        park[#park + 1], park[#park + 2] = id, 'disabled'
      elseif ready_at[nth] > now then
        cool[#cool + 1], cool[#cool + 2] = text(at), id
        soonest = math.min(soonest or at, at)
      else
        free[#free + 1], since[#since + 1] = id, text(at)
      end
    end
    move.ready(free, since)
    move.put('ZADD', cooling, cool)
    move.put('HSET', parked, park)
    local _ = soonest and move.expect(soonest)
    move.out(gone)
  end

  return move
end
