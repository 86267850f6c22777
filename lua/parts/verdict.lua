-- Tells those who listen on a channel when one of some endpoints has become ready. Who may not
-- publish gives back all the same.
local function tell(channel, ready_at, orders, codes)
  for nth, at in ipairs(channel ~= '' and ready_at or {}) do
    if at <= now and not orders[nth] and not codes[nth] then
      pcall(call, 'SPUBLISH', channel, '')
      return
    end
  end
end

-- Readies endpoints that nothing stands against, by rank where they have one, or lets them cool.
-- These keys have not been looked at: this comes before other writes, and an error leaves nothing.
local function free(ids, ready_at, ranks, due, struck)
  local ready, cool, soonest = {}, {}, nil
  for nth, id in ipairs(ids) do
    -- Those of one call keep their order.
    local at = ready_at[nth] + nth - 1
    if ready_at[nth] > now then
      cool[#cool + 1], cool[#cool + 2] = text(at), id
      soonest = math.min(soonest or at, at)
    else
      ready[#ready + 1], ready[#ready + 2] = ranks[nth] or text(at), id
    end
  end
  -- The command that the user lacks of those behind the first write.
  local lacks = not may('HDEL', KEYS[1], '') and 'HDEL' or not may('ZREM', KEYS[1], '') and 'ZREM'
    or (struck or soonest) and not may('HSET', KEYS[1], '', '') and 'HSET'
  if lacks then
    error({err = 'NOPERM ' .. lacks})
  end
  if soonest then
    local _ = ready[1] and call('ZCARD', KEYS[2])
    call('ZADD', KEYS[3], unpack(cool))
    _ = soonest < (tonumber(due) or 0) and call('HSET', KEYS[1], 'due', text(soonest))
  end
  local _ = ready[1] and call('ZADD', KEYS[2], unpack(ready))
end

-- The verdict in the arguments from `at` on: cooldown, strike, quarantine code and shun, with the
-- number of the shun's key after that of the last one.
local function verdict_at(at, key)
  local strike, code, rest = ARGV[at + 1], ARGV[at + 2], 0
  if strike ~= 'keep' and strike ~= 'add' and strike ~= 'reset' then
    refuse('strike')
  elseif code ~= '' and string.find(code, '[^a-z_]') then
    refuse('quarantine')
  end
  if ARGV[at + 3] ~= '0' then
    rest, key = integer(ARGV[at + 3], 0, LONGEST, 'shun'), key + 1
    if not KEYS[key] then
      refuse('shun')
    end
  end
  return integer(ARGV[at], 0, LONGEST, 'cooldown'), strike, code ~= '' and code or nil, rest, key
end
