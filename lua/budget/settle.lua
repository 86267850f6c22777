-- Tells what became of the probe after a pause: with `success` the rate is in force again, without
-- a burst; with `unknown` another one may probe.
--
-- KEYS: budget
-- ARGV: known interval_us burst what
-- Replies:
--   settled
--   stale
local known = integer(ARGV[1], 0, LONGEST, 'known')
local interval = integer(ARGV[2], 1, LONGEST, 'interval')
local ahead = integer(ARGV[3], 1, LONGEST, 'burst') * interval
local what = ARGV[4]
if what ~= 'success' and what ~= 'unknown' or ahead > LONGEST then
  refuse('what')
end

if known ~= number or level == 0 then
  return {'stale'}
end
probe = 0
if what == 'success' then
  level, till = 0, 0
  tat = max(tat, now + ahead - interval)
end
save()
return {'settled'}
