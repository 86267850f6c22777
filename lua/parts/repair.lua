-- What a repair does: gathered while all is read, recorded, and then carried out.
local function repair(move)
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

  -- Says how many it mended.
  function fix.carry_out()
    if #mended == 0 then
      return 0
    end
    -- The trail takes its ids from the arguments: behind the four that a repair has.
    for nth, id in ipairs(mended) do
      ARGV[4 + nth] = id
    end
    record('repair', 5, 1)
    for _, step in ipairs(steps) do
      call(unpack(step))
    end
    move.settle(ended, orders, {}, till)
    move.out(gone)
    return #mended
  end

  return fix
end
