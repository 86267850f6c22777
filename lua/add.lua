-- Adds members, and updates weight and count of those that are there. A newcomer without a count
-- starts at its own of before, and not below the lowest share.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? (id weight assignments?)*
-- Replies:
--   changed number
--   uninitialised
--   too_new schema
local meta, ready, members, uses, weights, former =
  KEYS[1], KEYS[2], KEYS[9], KEYS[10], KEYS[11], KEYS[5]
local ids, weight, named = members_at(3, 1000)

local schema, mode, policy = unpack(call('HMGET', meta, 'schema', 'mode', 'policy'))
local shut = closed(schema)
if shut then
  return shut
elseif #ids == 0 then
  record('add')
  return {'changed', '0'}
end
local by_share = mode == 'shared' or policy == 'least_assigned'
local move = moves(by_share)
move.check_types()
allowed(move.orders, {HDEL = 1})
local shares, heavy = call('ZMSCORE', uses, unpack(ids)), call('HMGET', weights, unpack(ids))
local own, standing = call('HMGET', former, unpack(ids)), call('HMGET', move.orders, unpack(ids))
local readied, cools = call('ZMSCORE', ready, unpack(ids)), call('ZMSCORE', KEYS[3], unpack(ids))
local leased, reasons = call('ZMSCORE', KEYS[4], unpack(ids)), call('HMGET', KEYS[8], unpack(ids))
local lowest, lowest_share = unpack(call('ZRANGE', uses, 0, 0, 'WITHSCORES'))
local lowest_weight = heft(lowest and call('HGET', weights, lowest))
local lowest_count = lowest and assignments(lowest_share, lowest_weight) or 0

local changed, free, orders, since, back = 0, {}, {}, {}, {}
local roster, scores, ranks, loads, light = {}, {}, {}, {}, {}
for nth, id in ipairs(ids) do
  local old, w, was, count = shares[nth], weight[nth], heft(heavy[nth]), named[nth]
  local removed = standing[nth] == 'remove'
  local placed = readied[nth] or cools[nth] or leased[nth] or reasons[nth]
  if old then
    local before = assignments(old, was)
    count = count or before
    changed = changed + ((count ~= before or w ~= was or removed or not placed) and 1 or 0)
    two(ranks, move.share(count, w), id)
  else
    count = count or math.max(tonumber(own[nth]) or 0, floor(lowest_count * w / lowest_weight))
    changed = changed + 1
    two(roster, 0, id)
  end
  if not old or not placed then
    free[#free + 1], orders[#free + 1], since[#free + 1] = id, not removed and standing[nth], now
  end
  two(scores, move.share(count, w), id)
  if w > 1 then
    two(loads, id, w)
  elseif heavy[nth] then
    light[#light + 1] = id
  end
  -- Also one that a member of this name has left behind.
  if removed then
    back[#back + 1] = id
  end
end
record('add', 3, 3)
move.put('HDEL', weights, light)
move.put('HDEL', move.orders, back)
move.put('ZADD', members, roster)
call('ZADD', uses, unpack(scores))
move.put('HSET', weights, loads)
move.put('HDEL', former, free)
call('HSET', meta, 'weighted', call('HLEN', weights))
if by_share and #ranks > 0 then
  call('ZADD', ready, 'XX', unpack(ranks))
end
move.settle(free, orders, {}, since)
return {'changed', text(changed)}
