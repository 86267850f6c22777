-- Looks through some of one key for what no member or lease stands behind. A stranger in a place
-- becomes a member that is disabled, or that will be when its lease ends; what belongs to nobody is
-- erased.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
-- ARGV: by? config_version? part cursor
-- Replies:
--   mended cursor? number
--   uninitialised
--   too_new schema
local meta, leases, requests, strikes = KEYS[1], KEYS[4], KEYS[6], KEYS[12]
local cancelled, parked, members, uses = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local shut = closed(call('HGET', meta, 'schema'))
if shut then
  return shut
end
local move = moves()
move.check_types()
local fix = repair(move)
local claims = claims_of(fix)
local lowest = fix.lowest()

-- Takes in what is in this place, unless it is a member.
local function place(key)
  return function(id, reason)
    if call('ZSCORE', members, id) then
      return
    elseif key == uses or not sense.id(id) then
      fix.step(sense.id(id) and id or '-', key == parked and 'HDEL' or 'ZREM', key, id)
      return
    end
    fix.step(id, 'ZADD', members, 0, id)
    fix.step(id, 'ZADD', uses, 'NX', lowest, id)
    if key ~= parked or reason == 'disabled' then
      fix.step(id, 'HSETNX', move.orders, id, 'disable')
    end
    if key ~= parked and key ~= leases then
      fix.step(id, 'ZREM', key, id)
      fix.step(id, 'HSET', parked, id, 'disabled')
    end
  end
end

-- What is kept of members under their ids; of those who left, their counts.
local function kept(key, part)
  return function(field, value)
    local id = part == 'strikes' and string.match(field, '^@(.*)$') or field
    local good = call('ZSCORE', members, id)
    if part == 'former' then
      good = not good and string.find(value, '^%d+$') and #value <= 16
    elseif part == 'orders' then
      good = good or field == '*' or field == '.' or value == 'remove'
    elseif part == 'strikes' then
      good = good and sense.strikes(field, value)
    end
    if not good then
      fix.step(sense.id(id) and id or '-', 'HDEL', key, field)
    end
  end
end

local parts = {
  ready = {KEYS[2], 'ZSCAN', place(KEYS[2])}, cooling = {KEYS[3], 'ZSCAN', place(KEYS[3])},
  leases = {leases, 'ZSCAN', place(leases)}, parked = {parked, 'HSCAN', place(parked)},
  claims = {requests, 'HSCAN', claims.take}, uses = {uses, 'ZSCAN', place(uses)},
  strikes = {strikes, 'HSCAN', kept(strikes, 'strikes')},
  orders = {move.orders, 'HSCAN', kept(move.orders, 'orders')},
  weights = {KEYS[11], 'HSCAN', kept(KEYS[11], 'weights')},
  former = {KEYS[5], 'HSCAN', kept(KEYS[5], 'former')},
  requests = {requests, 'HSCAN', claims.request},
  cancelled = {cancelled, 'ZSCAN', claims.tombstone},
}
local part = parts[ARGV[3]] or refuse('part')
local page = call(part[2], part[1], ARGV[4], 'COUNT', 250)
for nth = 1, #page[2], 2 do
  part[3](page[2][nth], page[2][nth + 1])
end
return {'mended', page[1] == '0' and '' or page[1], text(fix.carry_out())}
