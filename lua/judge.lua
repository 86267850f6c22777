-- Applies the verdicts on grants of a shared pool, up to 16. One never undoes a stronger one. The
-- shun keys are those of the verdicts with a shun, in order.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses weights strikes
--   former shun*
-- ARGV: (id fence cooldown_us strike quarantine? shun_us)+
-- Replies:
--   ended (released|not_owner)+
--   uninitialised
--   too_new schema
local verdicts, ids, fences = {}, {}, {}
for nth = 1, integer(tostring(#ARGV / 6), 1, BATCH, 'releases') do
  ids[nth], verdicts[nth] = name(ARGV[6 * nth - 5]), verdict_at(6 * nth - 3)
  fences[nth] = integer(ARGV[6 * nth - 4], 0, 2 * LONGEST, 'fence')
end

local schema, mode, last = unpack(call('HMGET', meta, 'schema', 'mode', 'fence'))
local shut = closed(schema)
if shut then
  return shut
end
check_types()

-- Keeps an endpoint from everybody, as far as nothing stronger does.
local function keep_back(id, verdict)
  local till = text(now + verdict.cooldown)
  local place = call('HGET', parked, id)
  if place and string.sub(place, 1, 12) == 'quarantined:' then
    return
  elseif verdict.code then
    call('HSET', parked, id, 'quarantined:' .. verdict.code)
    call('ZREM', ready, id)
    call('ZREM', cooling, id)
  elseif call('ZSCORE', cooling, id) then
    call('ZADD', cooling, 'GT', till, id)
  elseif verdict.cooldown > 0 and call('ZREM', ready, id) == 1 then
    call('ZADD', cooling, till, id)
  end
end

local reply = {'ended'}
for nth, id in ipairs(ids) do
  local granted = mode == 'shared' and fences[nth] >= 1 and fences[nth] <= tonumber(last)
  if granted and call('ZSCORE', uses, id) then
    judge(id, fences[nth], verdicts[nth], call('HGET', strikes, id), last)
    keep_back(id, verdicts[nth])
    reply[nth + 1] = 'released'
  else
    reply[nth + 1] = 'not_owner'
  end
end
return reply
