-- What administrators' orders on members have in common.
local function roster(move)
  local meta, ready, cooling, parked, uses = KEYS[1], KEYS[2], KEYS[3], KEYS[8], KEYS[10]
  local roll = {}

  -- The ids from argument `first` on, each once.
  function roll.named(first)
    local ids, seen = {}, {}
    if #ARGV - first + 1 > 1000 then
      refuse('too many ids')
    end
    for nth = first, #ARGV do
      local id = name(ARGV[nth])
      if not seen[id] then
        ids[#ids + 1], seen[id] = id, true
      end
    end
    return ids
  end

  -- Why an order on these ids is not carried out, if it is not: the pool, or the first stranger.
  function roll.barred(ids)
    local shut = closed(call('HGET', meta, 'schema'))
    if shut then
      return shut
    end
    move.check_types()
    allowed(move.orders, {HSET = 2, HDEL = 1})
    if #ids == 0 then
      return nil
    end
    for nth, share in ipairs(call('ZMSCORE', uses, unpack(ids))) do
      if not share then
        return {'unknown', ids[nth]}
      end
    end
  end

  function roll.place(id)
    return call('HGET', parked, id) or call('ZSCORE', ready, id) and 'ready'
      or call('ZSCORE', cooling, id) and 'cooling' or 'leased'
  end

  -- The order that stands; one for quarantine ends when it is carried out.
  function roll.order(id, place)
    local order = call('HGET', move.orders, id)
    local over = order and place ~= 'leased' and string.sub(order, 1, 11) == 'quarantine:'
    return not over and order or nil
  end

  -- Records an order, unless the member is on its way out; 1 if that was news.
  function roll.stand(id, place, order)
    local standing = roll.order(id, place)
    if standing == order or standing == 'remove' then
      return 0
    end
    call('HSET', move.orders, id, order)
    return 1
  end

  -- Forgets some orders to remove what is gone: workers, who carry them out, cannot.
  function roll.sweep()
    local some = call('HSCAN', move.orders, now % 131072, 'COUNT', 128)[2]
    for nth = 1, math.min(#some, 256), 2 do
      if some[nth + 1] == 'remove' and not call('ZSCORE', uses, some[nth]) then
        call('HDEL', move.orders, some[nth])
      end
    end
  end

  return roll
end
