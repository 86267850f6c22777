-- Calls cost a server mostly small things: a function made costs as much as a lookup, and so does
-- a number among the words of a command. So what is constant is a string.
local call, may, floor, format = redis.call, redis.acl_check_cmd, math.floor, string.format

-- The layout of the keys; another number is another layout.
local SCHEMA = '1'
-- 2^52 microseconds, 142 years: added to the time of day it is still a whole number.
local LONGEST = 4503599627370496
-- No failover loses more grants than this.
local MOST_LOST = 1048576

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- A whole number as commands take it; `%d` is three times as fast as `%.0f`.
local function text(number)
  return format('%d', number)
end

-- Ends the call, which has written nothing yet.
local function refuse(what)
  error({err = 'BADCALL ' .. what})
end

local stamp = text(now)
if tonumber(stamp) ~= now then
  refuse('a server of 32 bits')
end

-- Why a pool with this schema number cannot be used here, if it cannot.
local function closed(schema)
  if not schema then
    return {'uninitialised'}
  elseif schema ~= SCHEMA then
    return {'too_new', schema}
  end
end
