-- Arguments, checked.
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
