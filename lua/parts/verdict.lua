-- Counts strikes: one for holders that fail at once, and a success ends only those from before
-- its grant.
local function judge(id, fence, strike, record, last)
  local count, struck_at = string.match(record or '0:0', '^(%d+):(%d+)$')
  if tonumber(struck_at) >= tonumber(fence) then
    return
  elseif strike == 'add' then
    count, struck_at = text(math.min(count + 1, 4294967295)), last
  elseif strike == 'keep' or count == '0' then
    return
  else
    count = '0'
  end
  call('HSET', KEYS[12], id, count .. ':' .. struck_at)
end

-- Lets a pair rest, and forgets some that have rested.
local function shun(key, id, rest)
  local till = now + rest
  for _, over in ipairs(call('ZRANGE', key, '-inf', stamp, 'BYSCORE', 'LIMIT', 0, 64)) do
    call('ZREM', key, over)
  end
  call('ZADD', key, 'GT', text(till), id)
  -- The key goes with its last pair: it is advice, and no state.
  local gone = text(math.ceil(till / 1000))
  call('PEXPIREAT', key, gone, 'NX')
  call('PEXPIREAT', key, gone, 'GT')
end

-- Readies endpoints that nothing stands against, by rank where they have one, or lets them cool.
local function free(ids, ready_at, ranks)
  local ready, cool = {}, {}
  for nth, id in ipairs(ids) do
    -- Those of one call keep their order.
    local rank = text(ready_at[nth] + nth - 1)
    if ready_at[nth] > now then
      cool[#cool + 1], cool[#cool + 2] = rank, id
    else
      ready[#ready + 1], ready[#ready + 2] = ranks[nth] or rank, id
    end
  end
  local _ = ready[1] and call('ZADD', KEYS[2], unpack(ready))
  _ = cool[1] and call('ZADD', KEYS[3], unpack(cool))
end

-- The verdict in the arguments from `at` on: cooldown, strike, quarantine code and shun, with the
-- number of the shun's key after that of the last one.
local function verdict_at(at, key)
  local strike, code, rest = ARGV[at + 1], ARGV[at + 2], 0
  if strike ~= 'keep' and strike ~= 'add' and strike ~= 'reset' then
    refuse('strike')
  elseif string.find(code, '[^a-z_]') then
    refuse('quarantine')
  end
  if ARGV[at + 3] ~= '0' then
    rest, key = integer(ARGV[at + 3], 0, LONGEST, 'shun'), key + 1
    if not KEYS[key] then
      refuse('shun')
    end
    allowed(KEYS[key], {PEXPIREAT = 1})
  end
  return integer(ARGV[at], 0, LONGEST, 'cooldown'), strike, code ~= '' and code or nil, rest, key
end
