-- Applies the verdicts on grants of a shared pool, up to 16. One never undoes a stronger one. The
-- shun keys are those of the verdicts with a shun, in order.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
--   shun*
-- ARGV: (id fence cooldown_us strike quarantine? shun_us)+
-- Replies:
--   ended (released|not_owner)+
--   uninitialised
--   too_new schema
local meta, ready, cooling, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[8]
local uses, strikes = KEYS[10], KEYS[12]
local asked, verdicts, key = integer(tostring(#ARGV / 6), 1, 16, 'verdicts'), {}, 12
for nth = 1, asked do
  name(ARGV[6 * nth - 5])
  integer(ARGV[6 * nth - 4], 0, 2 * LONGEST, 'fence')
  local verdict = {verdict_at(6 * nth - 3, key)}
  verdicts[nth], key = verdict, verdict[5]
end

local schema, mode, last, first =
  unpack(call('HMGET', meta, 'schema', 'mode', 'fence', 'first_fence'))
local shut = closed(schema)
if shut then
  return shut
end
last, first = tonumber(last) or 0, tonumber(first) or 0
local move = moves(true)
move.check_types()

-- Keeps an endpoint from everybody, as far as nothing stronger does.
local function keep_back(id, cooldown, code)
  local till = text(now + cooldown)
  local place = call('HGET', parked, id)
  if place and string.sub(place, 1, 12) == 'quarantined:' then
    return
  elseif code then
    call('HSET', parked, id, 'quarantined:' .. code)
    call('ZREM', ready, id)
    call('ZREM', cooling, id)
  elseif call('ZSCORE', cooling, id) then
    call('ZADD', cooling, 'GT', till, id)
  elseif cooldown > 0 and call('ZREM', ready, id) == 1 then
    call('ZADD', cooling, till, id)
    move.expect(now + cooldown)
  end
end

local reply = {'ended'}
for nth = 1, asked do
  local id, fence = ARGV[6 * nth - 5], tonumber(ARGV[6 * nth - 4])
  local cooldown, strike, code, rest, site = unpack(verdicts[nth], 1, 5)
  local granted = mode == 'shared' and fence > first and fence <= last
  reply[nth + 1] = 'not_owner'
  if granted and call('ZSCORE', uses, id) then
    reply[nth + 1] = 'released'
    judge(id, fence, strike, call('HGET', strikes, id), text(last))
    -- Who has enabled it since that grant knew better.
    local enabled = code and tonumber(call('HGET', strikes, '@' .. id)) or 0
    keep_back(id, cooldown, fence > enabled and code or nil)
    if rest > 0 then
      shun(KEYS[site], id, rest)
    end
  end
end
return reply
