local call, format, find, max = redis.call, string.format, string.find, math.max

-- 2^52 microseconds, 142 years: added to the time of day it is still a whole number.
local LONGEST = 4503599627370496
-- A key outlives what it says by this: one that vanishes too early is no limit at all.
local MARGIN_MS = 60000

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
-- `%d` is three times as fast as `%.0f`, and on a server of 32 bits has 11 places at most.
local stamp = format('%d', now)
if #stamp < 12 then
  error({err = 'BADCALL a server of 32 bits'})
end
