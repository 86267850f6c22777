local call, format, max = redis.call, string.format, math.max

-- 2^52 microseconds, 142 years: added to the time of day it is still a whole number.
local LONGEST = 4503599627370496
-- A key outlives what it says by this: one that vanishes too early is no limit at all.
local MARGIN_MS = 60000
-- A pause without a success after it is remembered for an hour after its end.
local LINGER = 3600000000

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- Ends the call, which has written nothing yet.
local function refuse(what)
  error({err = 'BADCALL ' .. what})
end

local function integer(argument, least, most, what)
  local number = tonumber(argument)
  if not number or number < least or number > most or string.find(argument, '%D') then
    refuse(what)
  end
  return number
end

local function text(number)
  return format('%.0f', number)
end
