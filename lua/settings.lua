-- Tells the number of a pool's layout, and which of its settings are none, also of a pool whose
-- layout is another.
--
-- KEYS: meta
-- ARGV:
-- Replies:
--   settings schema? field*
local meta = KEYS[1]
local reply = {'settings', call('HGET', meta, 'schema') or ''}
local function look(field, ...)
  local value = call('HGET', meta, field) or ''
  for _, pattern in ipairs({...}) do
    if string.find(value, pattern) and #value <= 16 then
      return
    end
  end
  reply[#reply + 1] = field
end
look('mode', '^exclusive$', '^shared$')
look('policy', '^earliest$', '^least_assigned$', '^random$')
look('failover_hold', '^on$', '^off$')
look('loading', '^1?$')
look('config_version', '^%d*$')
for _, field in ipairs({
  'largest_ttl', 'largest_lifetime', 'fence', 'first_fence', 'hold_until', 'due', 'weighted',
}) do
  look(field, '^%d+$')
end
return reply
