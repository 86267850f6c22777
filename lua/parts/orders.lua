-- The orders that stand on these, from their key. A note stands among them: where it is not, they
-- are on another node while their slot moves, or lost, and what is not there is not taken for none.
local function ordered(orders, ids)
  local number = #ids + 1
  ids[number] = '.'
  local found = call('HMGET', orders, unpack(ids))
  ids[number] = nil
  if not found[number] then
    error({err = 'NOORDERS they are not here'})
  end
  return found
end
