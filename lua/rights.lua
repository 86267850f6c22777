-- Tells what the user who asks may do, by the server's own rules, without doing it.
--
-- KEYS: meta
-- ARGV:
-- Replies:
--   rights read tokens lease order read_trail write_trail outside server
local meta = KEYS[1]
local stem = string.sub(meta, 1, -5)

local function may(...)
  return redis.acl_check_cmd(...) and '1' or '0'
end

return {
  'rights', may('HGET', meta, 'schema'), may('HGET', stem .. 'requests', '@id'),
  may('ZADD', stem .. 'leases', '0', 'id'), may('HSET', stem .. 'orders', 'id', 'disable'),
  may('XREVRANGE', stem .. 'audit', '+', '-'), may('XADD', stem .. 'audit', '*', 'by', 'id'),
  may('GET', '-' .. meta), may('FLUSHALL'),
}
