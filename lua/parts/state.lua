local meta, ready, cooling, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owners, requests, cancelled, parked = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local members, uses, weights = KEYS[9], KEYS[10], KEYS[11]
local strikes, former = KEYS[12], KEYS[13]
-- Not declared: a role cannot declare a key that it may only read.
local orders = string.sub(meta, 1, -5) .. 'orders'

local TYPES = {
  'hash', 'zset', 'zset', 'zset', 'hash', 'hash', 'zset', 'hash', 'zset', 'zset', 'hash', 'hash',
  'hash',
}

local function check_type(key, expected)
  local found = call('TYPE', key).ok
  if found ~= expected and found ~= 'none' then
    error({err = 'WRONGTYPE a key of the pool holds another type'})
  end
end

-- Before a call writes to keys that it has not read: what an error leaves written stays written.
local function check_types()
  for nth, expected in ipairs(TYPES) do
    check_type(KEYS[nth], expected)
  end
  check_type(orders, 'hash')
  for nth = #TYPES + 1, #KEYS do
    check_type(KEYS[nth], 'zset')
  end
end

-- Assignments of a member with this share, which is (assignments + 1/2) / weight.
local function assignments(share, weight)
  return floor((share or 0.5) * (weight or 1))
end

local function share_of(count, weight)
  return string.format('%.17g', (count + 0.5) / weight)
end
