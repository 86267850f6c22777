-- Puts a page of members in order: each into one place, as the orders say, with a count. A lease
-- that nobody can give back any more, and a member without a place, rest as long as a holder could
-- still be using them.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? after? limit
-- Replies:
--   mended last? number
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local requests, parked, members = KEYS[6], KEYS[8], KEYS[9]
local after, limit = ARGV[3], integer(ARGV[4], 1, 250, 'limit')
local from = after == '' and '-' or '(' .. name(after)

local schema, mode, policy, largest_ttl =
  unpack(call('HMGET', meta, 'schema', 'mode', 'policy', 'largest_ttl'))
local shut = closed(schema)
if shut then
  return shut
end
local by_share = mode == 'shared' or policy == 'least_assigned'
local move = moves(by_share)
move.check_types()
local fix, furthest = repair(move), now + integer(largest_ttl, 1, LONGEST, 'largest_ttl')
local lowest = fix.lowest()

-- One that is leased is nowhere else.
local function mend_lease(id, deadline, order)
  local token = call('HGET', requests, '@' .. id) or ''
  local record = call('HGET', requests, token) or ''
  if string.match(record, '^%d+:%d+:%d+:(.+)$') ~= id then
    fix.step(id, 'ZREM', leases, id)
    fix.step(id, 'HDEL', requests, '@' .. id)
    fix.settle(id, order, sense.time(deadline) and math.min(deadline, furthest) or furthest)
  elseif deadline > furthest or not sense.time(deadline) then
    fix.step(id, 'ZADD', leases, text(furthest), id)
  end
end

local function mend_place(id, reason, free, order, barred)
  if not reason and not free then
    fix.settle(id, order, furthest)
  elseif order == 'remove' then
    fix.step(id, 'HDEL', move.orders, id)
    fix.remove(id)
  elseif reason == 'disabled' and not barred then
    fix.step(id, 'HSET', move.orders, id, 'disable')
  elseif not reason and barred then
    fix.step(id, 'HSET', parked, id, 'disabled')
  end
end

local ids = call('ZRANGE', members, from, '+', 'BYLEX', 'LIMIT', 0, limit)
for _, id in ipairs(ids) do
  local deadline = call('ZSCORE', leases, id)
  local reason, order = fix.words(id)
  local readied, cools = call('ZSCORE', ready, id), call('ZSCORE', cooling, id)
  local bar = string.match(order or '', '^%l+')
  local barred = bar == 'disable' or bar == 'drain' or bar == 'remove'
  fix.numbers(id, readied, cools, lowest, furthest, by_share)
  if readied and (deadline or reason or barred or cools) then
    fix.step(id, 'ZREM', ready, id)
  end
  if cools and (deadline or reason or barred) then
    fix.step(id, 'ZREM', cooling, id)
  end
  if reason and (deadline or order == 'remove') then
    fix.step(id, 'HDEL', parked, id)
  end
  if deadline then
    mend_lease(id, tonumber(deadline), order)
  else
    mend_place(id, reason, readied or cools, order, barred)
  end
end
return {'mended', ids[limit] or '', text(fix.carry_out())}
