-- Looks for contradictions in a page of members, and in the sizes of the keys: a pool whose pages
-- are all in order, and whose sizes agree, is in order but for what is of no member.
--
-- KEYS: meta ready cooling leases requests cancelled parked members uses strikes weights
-- ARGV: orders after? limit
-- Replies:
--   checked last? (finding id?)*
--   uninitialised
--   too_new schema
local meta, ready, cooling, leases, requests = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, parked, members, uses, strikes = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local weights, orders, after, limit = KEYS[11], ARGV[1], ARGV[2], integer(ARGV[3], 1, 1000, 'limit')

local schema, largest_ttl, due, loading, note, weighted =
  unpack(call('HMGET', meta, 'schema', 'largest_ttl', 'due', 'loading', 'note', 'weighted'))
if closed(schema) then
  return closed(schema)
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

local from = after == '' and '-' or '(' .. name(after)
local ids = call('ZRANGE', members, from, '+', 'BYLEX', 'LIMIT', 0, limit)
if #ids > 0 then
  local deadlines, shares = call('ZMSCORE', leases, unpack(ids)), call('ZMSCORE', uses, unpack(ids))
  local readied, cools = call('ZMSCORE', ready, unpack(ids)), call('ZMSCORE', cooling, unpack(ids))
  local reasons, standing = call('HMGET', parked, unpack(ids)), call('HMGET', orders, unpack(ids))
  local struck, heavy = call('HMGET', strikes, unpack(ids)), call('HMGET', weights, unpack(ids))
  for nth, id in ipairs(ids) do
    local deadline, reason = deadlines[nth], reasons[nth]
    local places = (deadline and 1 or 0) + (reason and 1 or 0) + (readied[nth] and 1 or 0)
      + (cools[nth] and 1 or 0)
    if places ~= 1 then
      finding('not_in_one_place', id)
    elseif not shares[nth] then
      finding('without_count', id)
    end
    local _ = deadline and check_lease(id, deadline)
    check_sense(id, readied[nth], cools[nth], deadline, shares[nth], heavy[nth], reason,
      standing[nth], struck[nth])
    check_order(id, deadline and 'leased' or reason or 'free', standing[nth])
  end
end
local _ = call('HEXISTS', orders, '.') == 1 or finding('orders_lost')
local leased, all = call('ZCARD', leases), call('ZCARD', members)
if call('ZCARD', ready) + call('ZCARD', cooling) + leased + call('HLEN', parked) ~= all
  or call('ZCARD', uses) ~= all then
  finding('members_miscounted')
end
local noted = call('HGET', requests, 'note')
if call('HLEN', requests) ~= 2 * leased + call('ZCARD', cancelled) + (noted and 1 or 0) then
  finding('leases_miscounted')
end
_ = #(note or '') > 64 and #(noted or '') > 64 or finding('note_missing')
_ = call('ZCOUNT', members, 0, 0) == all or finding('members_out_of_order')
_ = tonumber(weighted) == call('HLEN', weights) or finding('weights_miscounted')
for _, key in ipairs({leases, cooling}) do
  local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  _ = first and tonumber(first) < (tonumber(due) or 0) and due ~= '0' and finding('due_too_late')
end
return {'checked', ids[limit] or '', unpack(findings)}
