-- Ends the call when its user may not do one of these to a key. It comes before the first write: a
-- denial later leaves half a call written. Each has its least number of words behind the key.
local function allowed(key, commands)
  local words = {'', ''}
  for command, more in pairs(commands) do
    if not may(command, key, unpack(words, 1, more)) then
      error({err = 'NOPERM ' .. command})
    end
  end
end
