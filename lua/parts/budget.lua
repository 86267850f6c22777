-- A pause without a success after it is remembered for an hour after its end.
local LINGER = 3600000000

-- Ends the call, which has written nothing yet.
local function refuse(what)
  error({err = 'BADCALL ' .. what})
end

local function integer(argument, least, most, what)
  local number = tonumber(argument)
  if not number or number < least or number > most or find(argument, '%D') then
    refuse(what)
  end
  return number
end

local function text(number)
  return format('%d', number)
end
