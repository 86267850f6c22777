-- What assign reads, and the endpoint for the token if the call is a usual one: a pool in which
-- all is well, nothing is due and something is ready, one token that is new, and no wishes.
local meta, ready, requests, uses = KEYS[1], KEYS[2], KEYS[6], KEYS[10]
local weights, strikes, shun = KEYS[11], KEYS[12], KEYS[13]
local orders = string.sub(meta, 1, -5) .. 'orders'

local schema, fence, mode, largest_ttl, weighted, due, loading = unpack(call('HMGET', meta,
  'schema', 'fence', 'mode', 'largest_ttl', 'weighted', 'due', 'loading'))
local paused, note = unpack(call('HMGET', orders, '*', '.'))
local open = schema == SCHEMA and mode == 'shared' and ttl <= tonumber(largest_ttl)
  and not loading and note
local last, picked = tonumber(fence) or -1, nil
shun = open and shun and call('EXISTS', shun) == 1 and shun

local usual = open and not paused and not shun and prefer == '' and #ARGV == 6 and asked == 1
  and weighted == '0' and last >= 0 and last <= LONGEST and (tonumber(due) or 0) > now
  and not call('HGET', requests, tokens[1])
if usual then
  picked = call('ZRANGE', ready, '0', '0')
  usual = picked[1]
end
