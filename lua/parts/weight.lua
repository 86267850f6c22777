-- A member's weight: 1 where it has none, or one that no order gives.
local function heft(weight)
  local number = tonumber(weight)
  return number and number >= 1 and number <= 1000 and floor(number) or 1
end

-- Assignments of a member with this share, which is (assignments + 1/2) / weight.
local function assignments(share, weight)
  local count = floor((tonumber(share) or 0.5) * heft(weight))
  return math.max(math.min(count, 9007199254740992), 0)
end
