-- The members from argument `first` on, at most so many: ids, weights, and counts where they have
-- one.
local function members_at(first, most)
  local ids, weight, named = {}, {}, {}
  for nth = 1, integer(tostring((#ARGV - first + 1) / 3), 0, most, 'members') do
    local at = first + 3 * nth - 3
    ids[nth], weight[nth] = name(ARGV[at]), integer(ARGV[at + 1], 1, 1000, 'weight')
    local count = ARGV[at + 2]
    named[nth] = count ~= '' and integer(count, 0, 2199023255552, 'assignments') or nil
  end
  return ids, weight, named
end

local function two(list, left, right)
  list[#list + 1], list[#list + 2] = left, right
end
