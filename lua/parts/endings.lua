-- What release reads. The call is a usual one if all that it ends is plainly given back.
local meta, ready, cooling, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local requests, uses, strikes = KEYS[6], KEYS[10], KEYS[12]
local orders = string.sub(meta, 1, -5) .. 'orders'

local schema, policy, last, due = unpack(call('HMGET', meta, 'schema', 'policy', 'fence', 'due'))
if schema ~= SCHEMA then
  return schema and {'too_new', schema} or {'uninitialised'}
end
local leased, ids, owns = call('HMGET', requests, unpack(tokens)), {''}, {''}
for nth = 1, asked do
  local id = match(leased[nth] or '', '^%d+:%d+:%d+:(.+)$') or ''
  ids[nth], owns[nth] = id, '@' .. id
end
local owners = call('HMGET', requests, unpack(owns))
local deadlines = call('ZMSCORE', leases, unpack(ids))
ids[asked + 1] = '.'
local standing = call('HMGET', orders, unpack(ids))

-- Those that are valid, as positions, and whether they just become ready or cool.
local struck = nil
local reply, ended, plain, usual = {'ended', ''}, {0}, mild, standing[asked + 1]
local number = 0
for nth = 1, asked do
  local one = tokens[nth]
  -- A record that its endpoint does not point back to is of a lease that is over.
  local valid = owners[nth] == one and (deadlines[nth] or 0) + 0 > now
  for other = 1, valid and number or 0 do
    valid = valid and tokens[ended[other]] ~= one
  end
  reply[nth + 1] = valid and 'released' or 'not_owner'
  if valid then
    number = number + 1
    ended[number], plain = nth, plain and not standing[nth]
    struck = struck or reasons[nth] ~= 'keep'
  end
end
if number == 0 and usual then
  return reply
end
local owner, gone, ready_at, order, code = {''}, {'', ''}, {0}, {}, {}
for nth = 1, number do
  local at = ended[nth]
  owner[nth], ready_at[nth] = ids[at], now + cooldowns[at]
  order[nth], code[nth] = standing[at], codes[at]
  gone[2 * nth - 1], gone[2 * nth] = tokens[at], owns[at]
end
local records = struck and call('HMGET', strikes, unpack(owner)) or {}
for nth = 1, number do
  usual = usual and not records[nth] and reasons[ended[nth]] ~= 'add'
end
usual = usual and plain
