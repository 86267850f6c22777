-- Calls cost a server mostly small things: a function made costs as much as a lookup, and so does
-- a number among the words of a command, and a table that grows. So what is constant is a string,
-- tables are made as large as they mostly are, and what most calls do has no functions.
local call, may, floor, format = redis.call, redis.acl_check_cmd, math.floor, string.format
local find, match = string.find, string.match

-- The layout of the keys; another number is another layout.
local SCHEMA = '1'
-- 2^52 microseconds, 142 years: added to the time of day it is still a whole number.
local LONGEST = 4503599627370496

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
-- `%d` is three times as fast as `%.0f`, and on a server of 32 bits has 11 places at most.
local stamp = format('%d', now)
if #stamp < 12 then
  error({err = 'BADCALL a server of 32 bits'})
end
