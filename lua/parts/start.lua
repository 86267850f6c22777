local call = redis.call
local floor = math.floor

-- The layout of the keys; another number is another layout.
local SCHEMA = '1'
-- 2^52 microseconds, 142 years: added to the time of day it is still a whole number.
local LONGEST = 4503599627370496

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)

local function text(number)
  return string.format('%.0f', number)
end

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

local function token(argument)
  if not argument or #argument ~= 32 or string.find(argument, '%X') then
    refuse('token')
  end
  return argument
end

local function name(argument)
  if not argument or argument == '' or #argument > 64
    or string.find(argument, '[^A-Za-z0-9_-]') then
    refuse('id')
  end
  return argument
end

-- Why a pool with this schema number cannot be used here, if it cannot.
local function closed(schema)
  if not schema then
    return {'uninitialised'}
  elseif schema ~= SCHEMA then
    return {'too_new', schema}
  end
end

-- Ends the call when its user may not do one of these to a key. It comes before the first write: a
-- denial later leaves half a call written. Each has its least number of words behind the key.
local function allowed(key, commands)
  local words = {'', ''}
  for command, more in pairs(commands) do
    if not redis.acl_check_cmd(command, key, unpack(words, 1, more)) then
      error({err = 'NOPERM ' .. command})
    end
  end
end
