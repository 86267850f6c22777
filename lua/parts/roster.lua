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
      or call('ZSCORE', cooling, id) and 'cooling' or call('ZSCORE', KEYS[4], id) and 'leased'
      or 'lost'
  end

  -- The order that stands, maybe with one for quarantine behind it, which ends when it is carried
  -- out: when the lease ends.
  function roll.order(id, place)
    local order = call('HGET', move.orders, id) or nil
    if order and place ~= 'leased' then
      order = string.gsub(order, ':?quarantine:.+$', '')
    end
    return order ~= '' and order or nil
  end

  -- Records an order, unless the member is on its way out; 1 if that was news. An order to disable
  -- and one for quarantine stand beside each other.
  function roll.stand(id, place, order)
    local standing = roll.order(id, place) or ''
    if string.find(order, '^quarantine:') then
      local bar = string.match(standing, '^disable') or string.match(standing, '^drain')
      order = bar and bar .. ':' .. order or order
    elseif order ~= 'remove' then
      local code = string.match(standing, 'quarantine:.+$')
      order = code and order .. ':' .. code or order
    end
    if standing == order or standing == 'remove' then
      return 0
    end
    call('HSET', move.orders, id, order)
    return 1
  end

  -- Forgets some orders to remove what is gone: workers, who carry them out, cannot.
  function roll.sweep()
    local cursor = text(now % 131072)
    -- The second look begins at the start where the first has come to the end.
    for _ = 1, 2 do
      local page, some = call('HSCAN', move.orders, cursor, 'COUNT', '128'), nil
      cursor, some = page[1], page[2]
      for nth = 1, math.min(#some, 256), 2 do
        if some[nth + 1] == 'remove' and not call('ZSCORE', uses, some[nth]) then
          call('HDEL', move.orders, some[nth])
        end
      end
    end
  end

  return roll
end
