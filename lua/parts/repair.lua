-- What a repair does: gathered while all is read, recorded, and then carried out.
local function repair(move)
  local meta, cooling, leases, requests = KEYS[1], KEYS[3], KEYS[4], KEYS[6]
  local fix, steps, mended = {}, {}, {}
  local ended, orders, till, gone = {}, {}, {}, {}

  local function note(id)
    if mended[#mended] ~= id then
      mended[#mended + 1] = id
    end
  end

  function fix.step(id, ...)
    note(id)
    steps[#steps + 1] = {...}
  end

  -- Places it as if its lease ended, to rest until then.
  function fix.settle(id, order, time)
    note(id)
    ended[#ended + 1], orders[#orders + 1], till[#till + 1] = id, order, time
  end

  function fix.remove(id)
    note(id)
    gone[#gone + 1] = id
  end

  -- The first deadline or end of a cooldown.
  local function soonest()
    local first = nil
    for _, key in ipairs({leases, cooling}) do
      local time = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
      first = time and math.min(time, first or time) or first
    end
    return first
  end

  -- The least share that is one.
  function fix.lowest()
    return call('ZRANGE', KEYS[10], '0.0005', '9007199254740992', 'BYSCORE', 'LIMIT', 0, 1,
      'WITHSCORES')[2] or '0.5'
  end

  -- What calls go by beside the members: settings that are none get those that are safe.
  local function settle_meta()
    local due, hold, version, weighted =
      unpack(call('HMGET', meta, 'due', 'failover_hold', 'config_version', 'weighted'))
    local first = soonest()
    if not string.find(due or '', '^%d+$') or due ~= '0' and first and first < tonumber(due) then
      fix.step('-', 'HSET', meta, 'due', '0')
    end
    if hold ~= 'on' and hold ~= 'off' then
      fix.step('-', 'HSET', meta, 'failover_hold', 'on')
    end
    if version and (string.find(version, '%D') or #version > 16) then
      fix.step('-', 'HDEL', meta, 'config_version')
    end
    if weighted ~= text(call('HLEN', KEYS[11])) then
      note('-')
    end
  end

  -- Lets calls look for what has ended, and the server look up by hash.
  function fix.pool()
    settle_meta()
    -- All are at one score, in the order of their ids.
    for _, range in ipairs({{'-inf', '(0'}, {'(0', '+inf'}}) do
      local astray = call('ZRANGE', KEYS[9], range[1], range[2], 'BYSCORE', 'LIMIT', 0, 64)
      for _, id in ipairs(astray) do
        fix.step(sense.id(id) and id or '-', 'ZADD', KEYS[9], '0', id)
      end
    end
    for _, key in ipairs({meta, requests}) do
      if #(call('HGET', key, 'note') or '') <= 64 then
        fix.step('-', 'HSET', key, 'note', NOTE)
      end
    end
  end

  -- What stands for a member in words, made sense of: what is no order keeps out; what is no reason
  -- becomes one that an administrator ends.
  function fix.words(id)
    local parked, weights = KEYS[8], KEYS[11]
    local reason, order = call('HGET', parked, id), call('HGET', move.orders, id)
    local weight = call('HGET', weights, id)
    if order and not sense.order(order) then
      order = 'disable'
      fix.step(id, 'HSET', move.orders, id, order)
    end
    if reason and not sense.reason(reason) then
      reason = order and string.find(order, '^d') and 'disabled' or 'quarantined:administrator'
      fix.step(id, 'HSET', parked, id, reason)
    end
    if weight and not sense.weight(weight) then
      fix.step(id, 'HDEL', weights, id)
    end
    return reason, order
  end

  -- The same in numbers.
  function fix.numbers(id, rank, cools, lowest, till_then, by_share)
    local share = call('ZSCORE', KEYS[10], id)
    if not share or not sense.share(share) then
      share = lowest
      fix.step(id, 'ZADD', KEYS[10], share, id)
    end
    if rank and not sense.rank(rank) then
      fix.step(id, 'ZADD', KEYS[2], by_share and share or stamp, id)
    end
    if cools and not sense.time(cools) then
      fix.step(id, 'ZADD', cooling, text(till_then), id)
    end
  end

  -- Says how many it mended.
  function fix.carry_out()
    if #mended == 0 then
      return 0
    end
    -- The trail takes its ids from the arguments: behind the four that a repair has.
    for nth, id in ipairs(mended) do
      ARGV[4 + nth] = id
    end
    allowed(move.orders, {HDEL = 1, HSET = 2, HSETNX = 2})
    record('repair', 5, 1)
    for _, step in ipairs(steps) do
      call(unpack(step))
    end
    move.settle(ended, orders, {}, till)
    move.out(gone)
    move.expect(soonest() or now)
    call('HSET', meta, 'weighted', call('HLEN', KEYS[11]))
    return #mended
  end

  fix.pool()
  return fix
end
