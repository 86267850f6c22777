-- Gives a slot back that was not used, if nobody has reserved one since.
--
-- KEYS: budget
-- ARGV: tat interval_us probe
-- Replies:
--   undone
--   lapsed
local last = integer(ARGV[1], 0, 9007199254740992, 'tat')
local interval = integer(ARGV[2], 1, LONGEST, 'interval')

if tat ~= last or pace ~= interval then
  return {'lapsed'}
end
tat = tat - interval
if ARGV[3] == '1' then
  probe = 0
end
save()
return {'undone'}
