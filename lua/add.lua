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
local ids, weight, named = {}, {}, {}
for nth = 1, integer(tostring((#ARGV - 2) / 3), 0, 1000, 'members') do
  ids[nth], weight[nth] = name(ARGV[3 * nth]), integer(ARGV[3 * nth + 1], 1, 1000, 'weight')
  local count = ARGV[3 * nth + 2]
  named[nth] = count ~= '' and integer(count, 0, 2199023255552, 'assignments') or nil
end

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
local lowest, lowest_share = unpack(call('ZRANGE', uses, 0, 0, 'WITHSCORES'))
local lowest_weight = lowest and call('HGET', weights, lowest) or 1
local lowest_count = lowest and move.assignments(lowest_share, lowest_weight) or 0

local changed, new, since = 0, {}, {}
local roster, scores, ranks, loads = {}, {}, {}, {}
local function two(list, left, right)
  list[#list + 1], list[#list + 2] = left, right
end
record('add', 3, 3)
for nth, id in ipairs(ids) do
  local old, w, count = shares[nth], weight[nth], named[nth]
  if old then
    local before, was = move.assignments(old, heavy[nth]), tonumber(heavy[nth] or 1)
    count = count or before
    local differs = count ~= before or w ~= was or standing[nth] == 'remove'
    changed = changed + (differs and 1 or 0)
    two(ranks, move.share(count, w), id)
  else
    count = count or math.max(own[nth] or 0, floor(lowest_count * w / lowest_weight))
    changed = changed + 1
    new[#new + 1], since[#since + 1] = id, text(now + nth)
    two(roster, 0, id)
  end
  two(scores, move.share(count, w), id)
  if w > 1 then
    two(loads, id, w)
  elseif heavy[nth] then
    call('HDEL', weights, id)
  end
  -- Also one that a member of this name has left behind.
  if standing[nth] == 'remove' then
    call('HDEL', move.orders, id)
  end
end
move.put('ZADD', members, roster)
call('ZADD', uses, unpack(scores))
move.put('HSET', weights, loads)
move.put('HDEL', former, new)
call('HSET', meta, 'weighted', call('HLEN', weights))
if by_share and #ranks > 0 then
  call('ZADD', ready, 'XX', unpack(ranks))
end
move.ready(new, since)
return {'changed', text(changed)}
