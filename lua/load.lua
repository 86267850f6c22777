-- Loads up to 500 members into a pool that is not open yet, and updates weight and count of those
-- that are there; one without a count starts at zero. The first part of an order, which says how
-- many members all of it has, is recorded.
--
-- KEYS: meta ready members uses weights
-- ARGV: by? config_version? number? (id weight assignments?)*
-- Replies:
--   changed number
--   open: the pool has been opened
--   uninitialised
--   too_new schema
local meta, ready, members, uses, weights = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number = ARGV[3] ~= '' and integer(ARGV[3], 0, LONGEST, 'number')
local ids, weight, named = members_at(4, 500)

local schema, mode, policy, loading =
  unpack(call('HMGET', meta, 'schema', 'mode', 'policy', 'loading'))
local shut = closed(schema) or not loading and {'open'}
if shut then
  return shut
end
local by_share = mode == 'shared' or policy == 'least_assigned'
local shares = #ids > 0 and call('ZMSCORE', uses, unpack(ids)) or {}
local heavy = #ids > 0 and call('HMGET', weights, unpack(ids)) or {}
-- Before the first write: what an error leaves written stays so.
local _ = call('ZCARD', ready) + call('ZCARD', members) + call('ZCARD', uses)
  + call('HLEN', weights)

local changed, roster, scores, ranks, moved, loads, light = 0, {}, {}, {}, {}, {}, {}
for nth, id in ipairs(ids) do
  local old, w, was = shares[nth], weight[nth], heft(heavy[nth])
  local before = old and assignments(old, was)
  local count = named[nth] or before or 0
  if count ~= before or w ~= was then
    local share = string.format('%.17g', (count + 0.5) / w)
    changed = changed + 1
    two(scores, share, id)
    if old then
      two(moved, share, id)
    else
      two(roster, 0, id)
      two(ranks, by_share and share or text(now + nth), id)
    end
    if w > 1 then
      two(loads, id, w)
    elseif heavy[nth] then
      light[#light + 1] = id
    end
  end
end

allowed(meta, {ZADD = 2, HSET = 2, HDEL = 1})
if number then
  record('load', 4, 3, number)
end
local function put(command, key, items, option)
  if #items > 0 and option then
    call(command, key, option, unpack(items))
  elseif #items > 0 then
    call(command, key, unpack(items))
  end
end
put('ZADD', members, roster)
put('ZADD', uses, scores)
put('ZADD', ready, ranks)
put('ZADD', ready, by_share and moved or {}, 'XX')
put('HSET', weights, loads)
put('HDEL', weights, light)
call('HSET', meta, 'weighted', call('HLEN', weights))
return {'changed', text(changed)}
