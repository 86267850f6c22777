local call = redis.call
local floor = math.floor

-- The layout of the keys; another number is another layout.
local SCHEMA = 1
-- 2^52 microseconds, 142 years: added to the time of day it is still a whole number.
local LONGEST = 4503599627370496
local BATCH = 16
local MOST_IDS = 1000

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function text(number)
  return string.format('%.0f', number)
end

-- Ends the call, which has written nothing yet.
local function refuse(what)
  error({err = 'BADCALL ' .. what})
end

local function integer(argument, least, most, what)
  local digits = argument and #argument <= 16 and string.match(argument, '^%d+$')
  local number = digits and tonumber(digits)
  if not number or number < least or number > most then
    refuse(what)
  end
  return number
end

local function token(argument)
  if not argument or #argument ~= 32 or string.find(argument, '[^0-9a-f]') then
    refuse('token')
  end
  return argument
end

local function name(argument)
  if not argument or #argument < 1 or #argument > 64
    or string.find(argument, '[^A-Za-z0-9_-]') then
    refuse('id')
  end
  return argument
end

-- Why a pool with this schema number cannot be used here, if it cannot.
local function closed(schema)
  if not schema then
    return {'uninitialised'}
  elseif tonumber(schema) ~= SCHEMA then
    return {'too_new', schema}
  end
end

local function put(command, key, items)
  if #items > 0 then
    call(command, key, unpack(items))
  end
end
