-- Pauses a site, or lengthens its pause; it never ends one sooner. `known` is the number of the
-- last pause when the request was admitted that the site has answered: if there was another one
-- since, the answer belongs to that and is no further event.
--
-- KEYS: budget
-- ARGV: known asked_us first_us longest_us
-- Replies:
--   paused left_us level
--   stale
local known = integer(ARGV[1], 0, LONGEST, 'known')
local asked = integer(ARGV[2], 0, LONGEST, 'asked')
local first = integer(ARGV[3], 1, LONGEST, 'first')
local longest = integer(ARGV[4], 1, LONGEST, 'longest')

if known < number then
  if level == 0 then
    return {'stale'}
  end
  -- Not when the end has come: a probe may be under way.
  if asked > 0 and now < till then
    till = max(till, now + asked)
    save()
  end
  return {'paused', text(max(till - now, 0)), text(level)}
end
number, level, probe = known + 1, level + 1, 0
local pause = asked > 0 and asked or math.min(longest, first * 2 ^ math.min(level - 1, 40))
till = max(till, now + pause)
save()
return {'paused', text(till - now), text(level)}
