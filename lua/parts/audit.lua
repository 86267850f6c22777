-- The trail of orders, and who gives this one from which version of the inventory: the first two
-- arguments of every order.
local trail = string.sub(KEYS[1], 1, -5) .. 'audit'
if not ARGV[2] or #ARGV[1] > 64 or string.find(ARGV[1], '[^A-Za-z0-9_.@+-]') then
  refuse('by')
elseif #ARGV[2] > 20 or string.find(ARGV[2], '%D') then
  refuse('config_version')
end

-- Records an order on the ids from argument `first` on, each `step` arguments from the last, or on
-- `number` of which those are some; of many the first 32. It is the first write of every order: one
-- that cannot be recorded, because the user may not or the trail is of another type, changes
-- nothing.
local function record(order, first, step, number)
  local here, some = first and floor((#ARGV - first + 1) / step) or 0, {}
  for nth = 1, math.min(here, 32) do
    some[nth] = ARGV[first + (nth - 1) * step]
  end
  allowed(KEYS[1], {HSET = 2})
  call('XADD', trail, 'MAXLEN', '~', '10000', '*', 'by', ARGV[1], 'order', order,
    'version', ARGV[2], 'at', stamp, 'number', text(number or here), 'ids', table.concat(some, ' '))
  -- What is to be erased may hold anything.
  if ARGV[2] ~= '' and order ~= 'destroy' then
    call('HSET', KEYS[1], 'config_version', ARGV[2])
  end
end
