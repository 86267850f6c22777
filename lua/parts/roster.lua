-- The ids from argument `first` on, each once.
local function named(first)
  local ids, seen = {}, {}
  if #ARGV - first + 1 > MOST_IDS then
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
local function barred(ids)
  local shut = closed(call('HGET', meta, 'schema'))
  if shut or #ids == 0 then
    return shut
  end
  check_types()
  for nth, share in ipairs(call('ZMSCORE', uses, unpack(ids))) do
    if not share then
      return {'unknown', ids[nth]}
    end
  end
end

local function place_of(id)
  return call('HGET', parked, id) or call('ZSCORE', ready, id) and 'ready'
    or call('ZSCORE', cooling, id) and 'cooling' or 'leased'
end

-- The order that stands; one for quarantine ends when it is carried out.
local function order_of(id, place)
  local order = call('HGET', orders, id)
  local over = order and place ~= 'leased' and string.sub(order, 1, 11) == 'quarantine:'
  return not over and order or nil
end

-- Records an order, unless the member is on its way out; 1 if that was news.
local function stand(id, place, order)
  local standing = order_of(id, place)
  if standing == order or standing == 'remove' then
    return 0
  end
  call('HSET', orders, id, order)
  return 1
end
