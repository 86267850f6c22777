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

-- The position of the lowest share, ties by id.
local function least_of(ids, shares)
  local least = 1
  for nth = 2, #ids do
    if shares[nth] < shares[least]
      or shares[nth] == shares[least] and before(ids[nth], ids[least]) then
      least = nth
    end
  end
  return least
end
