-- No failover loses more grants than this.
local MOST_LOST = 1048576

-- A whole number as commands take it.
local function text(number)
  return format('%d', number)
end

-- Ends the call, which has written nothing yet.
local function refuse(what)
  error({err = 'BADCALL ' .. what})
end

-- Why a pool with this schema number cannot be used here, if it cannot.
local function closed(schema)
  if not schema then
    return {'uninitialised'}
  elseif schema ~= SCHEMA then
    return {'too_new', schema}
  end
end

-- A whole number that is an argument.
local function integer(argument, least, most, what)
  local number = argument and string.find(argument, '^%d+$') and tonumber(argument)
  if not number or number < least or number > most then
    refuse(what)
  end
  return number
end

local function token(argument)
  if not argument or #argument ~= 32 or not string.find(argument, '^%x+$') then
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
