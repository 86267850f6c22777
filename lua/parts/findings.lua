-- What a check finds: each finding with the id that it is about, or with an empty one.
local findings = {}
local function finding(what, id)
  findings[#findings + 1], findings[#findings + 2] = what, id or ''
end

local function check_order(id, place, order)
  order = string.match(order or '', '^%l+')
  local barred = order == 'disable' or order == 'drain' or order == 'remove'
  if place == 'disabled' and order ~= 'disable' and order ~= 'drain' then
    finding('disabled_by_nobody', id)
  elseif barred and (place == 'free' or order == 'remove' and place ~= 'leased') then
    finding('order_ignored', id)
  end
end
