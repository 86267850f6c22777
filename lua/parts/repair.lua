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

  -- Lets calls look for what has ended, and the server look up by hash.
  function fix.pool()
    local due, first = tonumber(call('HGET', meta, 'due')) or 0, soonest()
    if first and first < due then
      fix.step('-', 'HSET', meta, 'due', '0')
    end
    for _, key in ipairs({meta, requests}) do
      if #(call('HGET', key, 'note') or '') <= 64 then
        fix.step('-', 'HSET', key, 'note', NOTE)
      end
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
    return #mended
  end

  fix.pool()
  return fix
end
