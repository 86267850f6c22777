-- Ends valid leases with their verdicts, up to 16. The shun keys are those of the releases with
-- a shun, in order.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
--   shun*
-- ARGV: (token cooldown_us strike quarantine? shun_us)+ hint?
-- Replies:
--   ended (released|not_owner)+
--   uninitialised
--   too_new schema
local by_share, move, cool, free, soonest = policy == 'least_assigned', nil, {}, {'', ''}, nil
if not plain then
  move = rare.moves(by_share)
  move.check_types()
else
  local _ = rare and rare.ordered(orders, {})
  local ranks = by_share and call('ZMSCORE', uses, unpack(owner)) or {}
  local cools, frees = 0, 0
  for nth = 1, number do
    -- Those of one call keep their order.
    local at, id = ready_at[nth] + nth - 1, owner[nth]
    if ready_at[nth] > now then
      cool[cools + 1], cool[cools + 2], cools = format('%d', at), id, cools + 2
      soonest = soonest or at
      soonest = at < soonest and at or soonest
    else
      free[frees + 1], free[frees + 2], frees = ranks[nth] or format('%d', at), id, frees + 2
    end
  end
  -- The command that the user lacks of those behind the first write.
  local lacks = not may('HDEL', meta, '') and 'HDEL' or not may('ZREM', meta, '') and 'ZREM'
    or (rare or soonest) and not may('HSET', meta, '', '') and 'HSET'
  if lacks then
    error({err = 'NOPERM ' .. lacks})
  end
  -- These keys have not been looked at: they come first, and an error leaves nothing.
  if soonest then
    local _ = frees > 0 and call('ZCARD', ready)
    call('ZADD', cooling, unpack(cool))
    _ = soonest < (tonumber(due) or 0) and call('HSET', meta, 'due', format('%d', soonest))
  end
  local _ = frees > 0 and call('ZADD', ready, unpack(free))
end
call('HDEL', requests, unpack(gone))
call('ZREM', leases, unpack(owner))
if rare then
  for nth = 1, number do
    local at = ended[nth]
    if records[nth] or reasons[at] == 'add' then
      local fence = match(leased[at], '^%d+')
      rare.judge(owner[nth], fence, reasons[at], records[nth], last or '0')
    end
    if (rests[at] or 0) > 0 then
      rare.shun(sites[at], owner[nth], rests[at])
    end
  end
end
local _ = move and move.settle(owner, order, code, ready_at)
-- Tells those who listen when one has become ready. Who may not publish gives back all the same.
if ARGV[#ARGV] ~= '' then
  for nth = 1, number do
    if ready_at[nth] <= now and not order[nth] and not code[nth] then
      pcall(call, 'SPUBLISH', ARGV[#ARGV], '')
      break
    end
  end
end
return reply
