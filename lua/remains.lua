-- Tells which keys of a pool there are and of which type, also of a pool that is not set up. Those
-- that hold tokens, and the trail, are told to those who may see them.
--
-- KEYS: meta ready cooling leases parked members uses weights strikes former
-- ARGV:
-- Replies:
--   remains (name type)*
local stem = string.sub(KEYS[1], 1, -5)
local reply = {'remains'}
local function tell(key)
  local kind = call('TYPE', key).ok
  if kind ~= 'none' then
    reply[#reply + 1], reply[#reply + 2] = string.sub(key, #stem + 1), kind
  end
end
for _, key in ipairs(KEYS) do
  tell(key)
end
tell(stem .. 'orders')
for _, name in ipairs({'requests', 'cancelled', 'audit'}) do
  local _ = may('TYPE', stem .. name) and tell(stem .. name)
end
return reply
