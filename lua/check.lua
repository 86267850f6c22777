-- Looks for contradictions in a page of members, and in the sizes of the keys: a pool whose pages
-- are all in order, and whose sizes agree, is in order.
--
-- KEYS: meta ready cooling leases owners requests cancelled parked members uses
-- ARGV: orders after? limit
-- Replies:
--   checked last? (finding id?)*
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases, owners = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local requests, cancelled, parked = KEYS[6], KEYS[7], KEYS[8]
local members, uses = KEYS[9], KEYS[10]
local orders, after, limit = ARGV[1], ARGV[2], integer(ARGV[3], 1, 1000, 'limit')

local schema, largest_ttl, loading =
  unpack(call('HMGET', meta, 'schema', 'largest_ttl', 'loading'))
local shut = closed(schema)
if shut then
  return shut
end
local findings = {}
local function finding(what, id)
  findings[#findings + 1], findings[#findings + 2] = what, id or ''
end

local function check_lease(id, deadline)
  local holder = call('HGET', owners, id) or ''
  local record = call('HGET', requests, holder) or ''
  if holder == '' then
    finding('lease_without_owner', id)
  elseif string.match(record, '^%d+:%d+:%d+:(.+)$') ~= id then
    finding('lease_without_request', id)
  elseif tonumber(deadline) > now + largest_ttl then
    finding('deadline_too_far', id)
  elseif loading then
    finding('leased_while_loading', id)
  end
end

local function check_order(id, place, order)
  local barred = order == 'disable' or order == 'drain' or order == 'remove'
  if place == 'disabled' and order ~= 'disable' and order ~= 'drain' then
    finding('disabled_by_nobody', id)
  elseif barred and (place == 'free' or order == 'remove' and place ~= 'leased') then
    finding('order_ignored', id)
  end
end

local from = after == '' and '-' or '(' .. name(after)
local ids = call('ZRANGE', members, from, '+', 'BYLEX', 'LIMIT', 0, limit)
if #ids > 0 then
  local deadlines, shares = call('ZMSCORE', leases, unpack(ids)), call('ZMSCORE', uses, unpack(ids))
  local readied, cools = call('ZMSCORE', ready, unpack(ids)), call('ZMSCORE', cooling, unpack(ids))
  local reasons, standing = call('HMGET', parked, unpack(ids)), call('HMGET', orders, unpack(ids))
  for nth, id in ipairs(ids) do
    local deadline, reason = deadlines[nth], reasons[nth]
    local places = (deadline and 1 or 0) + (reason and 1 or 0) + (readied[nth] and 1 or 0)
      + (cools[nth] and 1 or 0)
    if places ~= 1 then
      finding('not_in_one_place', id)
    elseif not shares[nth] then
      finding('without_count', id)
    end
    if deadline then
      check_lease(id, deadline)
    end
    check_order(id, deadline and 'leased' or reason or 'free', standing[nth])
  end
end
local leased, all = call('ZCARD', leases), call('ZCARD', members)
if call('ZCARD', ready) + call('ZCARD', cooling) + leased + call('HLEN', parked) ~= all
  or call('ZCARD', uses) ~= all then
  finding('members_miscounted')
elseif call('HLEN', owners) ~= leased
  or call('HLEN', requests) ~= leased + call('ZCARD', cancelled) then
  finding('leases_miscounted')
end
return {'checked', ids[limit] or '', unpack(findings)}
