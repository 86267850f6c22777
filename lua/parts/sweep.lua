-- What clears away what time has ended. Made only by calls that find something of the kind.
local function sweeper(move)
  local cooling, leases, owners = KEYS[3], KEYS[4], KEYS[5]
  local requests, cancelled = KEYS[6], KEYS[7]
  local SWEEP = 64
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
    local tokens = call('HMGET', owners, unpack(ids))
    for nth = 1, #ids do
      tokens[nth] = tokens[nth] or ''
    end
    local records = call('HMGET', requests, unpack(tokens))
    local standing = call('HMGET', move.orders, unpack(ids))
    for nth, deadline in ipairs(ready_at) do
      local cooldown = string.match(records[nth] or '', '^%d+:%d+:(%d+):')
      ready_at[nth] = deadline + (cooldown or 0)
    end
    call('HDEL', owners, unpack(ids))
    call('HDEL', requests, unpack(tokens))
    call('ZREM', leases, unpack(ids))
    move.settle(ids, standing, {}, ready_at)
  end

  -- Takes back expired leases and readies what has cooled, at most SWEEP of each.
  function sweep.pool()
    local expired, deadlines = split(due(leases))
    local cooled, since = split(due(cooling))
    reclaim(expired, deadlines)
    move.put('ZREM', cooling, cooled)
    move.ready(cooled, since)
    return #expired, #cooled
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
    local deadline = id and call('ZSCORE', leases, id)
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
