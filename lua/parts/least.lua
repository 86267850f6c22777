-- Whether an id comes before another, byte by byte: `<` goes by the server's locale.
local function before(one, other)
  for at = 1, math.min(#one, #other) do
    local left, right = string.byte(one, at), string.byte(other, at)
    if left ~= right then
      return left < right
    end
  end
  return #one < #other
end

-- The place of each id among the others. They come nearly in order: few comparisons are needed.
local function places(ids)
  local order, place = {}, {}
  for nth, id in ipairs(ids) do
    local at = nth
    while at > 1 and before(id, ids[order[at - 1]]) do
      order[at], at = order[at - 1], at - 1
    end
    order[at] = nth
  end
  for at, nth in ipairs(order) do
    place[nth] = at
  end
  return place
end

-- The position of the lowest share, ties by place.
local function least_of(shares, place)
  local least = 1
  for nth = 2, #shares do
    local share, lowest = shares[nth], shares[least]
    if share < lowest or share == lowest and place[nth] < place[least] then
      least = nth
    end
  end
  return least
end
