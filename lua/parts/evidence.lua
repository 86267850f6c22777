-- What judge reads. The call is a usual one if nothing comes of it.
local meta, ready, cooling, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[8]
local uses, strikes = KEYS[10], KEYS[12]

local schema, mode, last, first =
  unpack(call('HMGET', meta, 'schema', 'mode', 'fence', 'first_fence'))
if schema ~= SCHEMA then
  return schema and {'too_new', schema} or {'uninitialised'}
end
last, first = tonumber(last) or 0, tonumber(first) or 0
local shares, struck = call('ZMSCORE', uses, unpack(ids)), call('HMGET', strikes, unpack(ids))
local reply, usual = {'ended', ''}, mild
for nth = 1, asked do
  local granted = mode == 'shared' and fences[nth] > first and fences[nth] <= last and shares[nth]
  reply[nth + 1] = granted and 'released' or 'not_owner'
  usual = usual and not struck[nth] and reasons[nth] ~= 'add' and cooldowns[nth] == 0
end
if usual then
  return reply
end
