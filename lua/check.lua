-- Looks for contradictions in a page of members, and in the sizes of the keys: a pool whose pages
-- are all in order, and whose sizes agree, is in order.
--
-- KEYS: meta ready cooling leases requests cancelled parked members uses
-- ARGV: orders after? limit
-- Replies:
--   checked last? (finding id?)*
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases, requests = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, parked, members, uses = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local orders, after, limit = ARGV[1], ARGV[2], integer(ARGV[3], 1, 1000, 'limit')

local schema, largest_ttl, due, loading =
  unpack(call('HMGET', meta, 'schema', 'largest_ttl', 'due', 'loading'))
if closed(schema) then
  return closed(schema)
end

local findings = {}
local function finding(what, id)
  findings[#findings + 1], findings[#findings + 2] = what, id or ''
end

local function check_lease(id, deadline)
  local holder = call('HGET', requests, '@' .. id) or ''
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

local function check(id)
  local deadline, reason = call('ZSCORE', leases, id), call('HGET', parked, id)
  local readied, cools = call('ZSCORE', ready, id), call('ZSCORE', cooling, id)
  local places = (deadline and 1 or 0) + (reason and 1 or 0) + (readied and 1 or 0)
    + (cools and 1 or 0)
  if places ~= 1 then
    finding('not_in_one_place', id)
  elseif not call('ZSCORE', uses, id) then
    finding('without_count', id)
  end
  if deadline then
    check_lease(id, deadline)
  end
  check_order(id, deadline and 'leased' or reason or 'free', call('HGET', orders, id))
end
local from = after == '' and '-' or '(' .. name(after)
local ids = call('ZRANGE', members, from, '+', 'BYLEX', 'LIMIT', 0, limit)
for _, id in ipairs(ids) do
  check(id)
end
local leased, all = call('ZCARD', leases), call('ZCARD', members)
if call('ZCARD', ready) + call('ZCARD', cooling) + leased + call('HLEN', parked) ~= all
  or call('ZCARD', uses) ~= all then
  finding('members_miscounted')
elseif call('HLEN', requests) ~= 2 * leased + call('ZCARD', cancelled) + 1 then
  finding('leases_miscounted')
end
for _, key in ipairs({leases, cooling}) do
  local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  local _ = first and tonumber(first) < tonumber(due or 0) and finding('due_too_late')
end
return {'checked', ids[limit] or '', unpack(findings)}
