-- What acquire does when its call is not a usual one. Puts endpoints into `picked`, and tells the
-- positions of the tokens that they are for and what tokens have already; or it tells an answer.
local function supply()
  local excluded, exclusions = excluded()
  local shut = closed(schema) or mode ~= 'exclusive' and {'shared'}
    or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl} or loading and {'loading'}
  if shut then
    return shut
  end
  local by_share = policy == 'least_assigned'
  local _ = last >= 0 and last <= LONGEST or refuse('fence')
  _ = note or ordered(orders, {})
  held = same and tonumber(held) or hold(info, largest_ttl)
  if not ((tonumber(due) or 0) > now) then
    due = catch_up(by_share)
  end
  local wants, grants, barred = recalled(requests, strikes, by_share)
  local choose = choice(excluded, exclusions, shun)
  picked = {}
  if wants[1] and not paused and held <= now then
    picked = choose[policy == 'random' and 'random' or 'first'](#wants, prefer, random)
  end
  if not next(grants) and not picked[1] then
    return refused(barred, paused, held, choose.none)
  end
  return nil, wants, grants
end
