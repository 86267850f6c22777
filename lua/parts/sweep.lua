-- What clears away what time has ended. Made only by calls that find something of the kind.
local function sweeper(move)
  local meta, cooling, leases, requests, cancelled = KEYS[1], KEYS[3], KEYS[4], KEYS[6], KEYS[7]
  local SWEEP = 64
  -- 2^53: later than all times of this house.
  local NEVER = '9007199254740992'
  local sweep = {}

  -- The first of those whose time has come, each with its time.
  local function due(key)
    return call('ZRANGE', key, '-inf', stamp, 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES')
  end

  local function split(alternating)
    local ids, scores = {}, {}
    for nth = 1, #alternating / 2 do
      ids[nth], scores[nth] = alternating[2 * nth - 1], alternating[2 * nth]
    end
    return ids, scores
  end

  -- Takes back leases past their deadline; the cooldown counts from there.
  local function reclaim(ids, ready_at)
    if #ids == 0 then
      return
    end
    local fields = {}
    for nth, id in ipairs(ids) do
      fields[nth] = '@' .. id
    end
    local tokens = call('HMGET', requests, unpack(fields))
    for nth = 1, #ids do
      tokens[nth] = tokens[nth] or ''
    end
    local records = call('HMGET', requests, unpack(tokens))
    local standing = ordered(move.orders, ids)
    for nth, deadline in ipairs(ready_at) do
      local cooldown, id = string.match(records[nth] or '', '^%d+:%d+:(%d+):(.+)$')
      ready_at[nth] = deadline + math.min(cooldown or 0, LONGEST)
      if id == ids[nth] then
        fields[#fields + 1] = tokens[nth]
      end
    end
    call('HDEL', requests, unpack(fields))
    call('ZREM', leases, unpack(ids))
    move.settle(ids, standing, {}, ready_at)
  end

  -- Takes back expired leases and readies what has cooled, at most SWEEP of each. Tells how many,
  -- and when there is more; no later than that calls have to look again.
  function sweep.pool()
    local expired, deadlines = split(due(leases))
    local cooled, since = split(due(cooling))
    if expired[1] then
      move.check_types()
    end
    -- What has only cooled needs no more than this: the key not looked at comes first.
    move.ready(cooled, since)
    move.put('ZREM', cooling, cooled)
    reclaim(expired, deadlines)
    local ends = call('ZRANGE', leases, '0', '0', 'WITHSCORES')[2] or NEVER
    local cools = call('ZRANGE', cooling, '0', '0', 'WITHSCORES')[2] or NEVER
    local soonest = tonumber(ends) < tonumber(cools) and ends or cools
    call('HSET', meta, 'due', soonest)
    return #expired, #cooled, soonest
  end

  -- Forgets tombstones whose time has come, at most SWEEP.
  function sweep.tombstones()
    local lapsed = call('ZRANGE', cancelled, '-inf', stamp, 'BYSCORE', 'LIMIT', 0, SWEEP)
    move.put('HDEL', requests, lapsed)
    move.put('ZREM', cancelled, lapsed)
  end

  -- What a token's record is worth now: 'lease' with id, fence and time left, 'tombstone', or
  -- nothing. A lease that has run out is taken back, and a tombstone that has lapsed forgotten.
  function sweep.recall(token, record)
    local till = string.match(record, '^cancelled:(%d+)$')
    if till and tonumber(till) > now then
      return 'tombstone'
    elseif till then
      move.check_types()
      call('ZREM', cancelled, token)
      call('HDEL', requests, token)
      return nil
    end
    local fence, id = string.match(record, '^(%d+):%d+:%d+:(.+)$')
    -- A record that its endpoint does not point back to is of a lease that is over.
    local owner = id and call('HGET', requests, '@' .. id) == token
    local deadline = owner and call('ZSCORE', leases, id)
    if deadline and tonumber(deadline) > now then
      return 'lease', {id, fence, text(deadline - now)}
    elseif deadline then
      move.check_types()
      reclaim({id}, {deadline})
    end
    return nil
  end

  return sweep
end
