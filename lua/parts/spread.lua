-- What assign does when its call is not a usual one. Puts endpoints into `picked`, and tells the
-- positions of the tokens that they are for; or it tells an answer.
local function spread()
  local excluded, exclusions = excluded()
  local shut = closed(schema) or mode ~= 'shared' and {'exclusive'}
    or ttl > tonumber(largest_ttl) and {'ttl_too_large', largest_ttl} or loading and {'loading'}
  if shut then
    return shut
  end
  local _ = note or ordered(orders, {})
  _ = last >= 0 and last <= LONGEST or refuse('fence')
  if not ((tonumber(due) or 0) > now) then
    catch_up(true)
  end
  local wants, _, barred = recalled(requests, strikes, true)
  local choose = choice(excluded, exclusions, shun)
  picked = {}
  if #wants > 0 and not paused then
    -- A preferred one takes all; otherwise no more than one endpoint a token is needed.
    picked = choose.first(#wants, prefer, random)
    if picked[1] == prefer then
      picked = {prefer}
    end
  end
  if not picked[1] then
    return refused(barred, paused, 0, choose.none)
  end
  return nil, wants
end
