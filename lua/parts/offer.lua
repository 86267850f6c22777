-- What acquire reads, and endpoints for the tokens if the call is a usual one: a pool in which all
-- is well, nothing is due and something is ready, tokens that are new, and no wishes.
local meta, ready, leases, requests = KEYS[1], KEYS[2], KEYS[4], KEYS[6]
local uses, strikes, shun = KEYS[10], KEYS[12], KEYS[13]
local orders = string.sub(meta, 1, -5) .. 'orders'

local schema, fence, mode, policy, largest_ttl, weighted, watched, identity, held, due, loading =
  unpack(call('HMGET', meta, 'schema', 'fence', 'mode', 'policy', 'largest_ttl', 'weighted',
    'failover_hold', 'identity', 'hold_until', 'due', 'loading'))
local paused, note = unpack(call('HMGET', orders, '*', '.'))
local open = schema == SCHEMA and mode == 'exclusive' and ttl <= tonumber(largest_ttl)
  and not loading and note
local info = open and watched == 'on' and call('INFO', 'replication')
local same = not info or find(info, 'master_replid:' .. identity, 1, true)
local last, picked = tonumber(fence) or -1, nil
shun = open and shun and call('EXISTS', shun) == 1 and shun

local usual = open and same and not paused and not shun and prefer == '' and #ARGV == 5 + asked
  and weighted == '0' and last >= 0 and last <= LONGEST and (tonumber(held) or LONGEST) <= now
  and (tonumber(due) or 0) > now
if usual then
  local records = call('HMGET', requests, unpack(tokens))
  for nth = 1, asked do
    usual = usual and not records[nth]
  end
end
if usual and policy ~= 'random' then
  picked = call('ZRANGE', ready, '0', format('%d', asked - 1))
  usual = picked[1]
elseif usual then
  -- Each from a place of its own.
  local all, draw, taken = call('ZCARD', ready), random, {}
  picked, usual = {''}, all >= asked
  for nth = 1, usual and asked or 0 do
    local at = format('%d', draw / 4294967296 * all)
    local id = call('ZRANGE', ready, at, at)[1]
    usual, picked[nth], taken[id] = usual and not taken[id], id, true
    -- Numbers that the client's one number leads to (Numerical Recipes' generator).
    draw = (draw * 1664525 + 1013904223) % 4294967296
  end
end
