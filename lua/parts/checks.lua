-- What is to be said of one member.
local function check_order(id, place, order)
  order = string.match(order or '', '^%l+')
  local barred = order == 'disable' or order == 'drain' or order == 'remove'
  if place == 'disabled' and order ~= 'disable' and order ~= 'drain' then
    finding('disabled_by_nobody', id)
  elseif barred and (place == 'free' or order == 'remove' and place ~= 'leased') then
    finding('order_ignored', id)
  end
end

local function check_sense(id, rank, cools, deadline, share, weight, reason, order, struck)
  if not (sense.rank(rank or 0) and sense.time(cools or 0) and sense.time(deadline or 0)) then
    finding('time_senseless', id)
  end
  if share and not sense.share(share) then
    finding('count_senseless', id)
  end
  if weight and not sense.weight(weight) then
    finding('weight_senseless', id)
  end
  if reason and not sense.reason(reason) then
    finding('reason_senseless', id)
  end
  if order and not sense.order(order) then
    finding('order_senseless', id)
  end
  if struck and not sense.strikes(id, struck) then
    finding('strikes_malformed', id)
  end
end
