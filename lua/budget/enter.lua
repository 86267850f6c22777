-- Takes a place among the passages in flight, or moves the deadline of one that has a place.
--
-- KEYS: passages
-- ARGV: most passage hold_us
-- Replies:
--   entered
--   full left_us
local passages, passage = KEYS[1], ARGV[2]
local most = integer(ARGV[1], 1, LONGEST, 'most')
local hold = integer(ARGV[3], 1, LONGEST, 'hold')

local left = wait_for_place(passages, most, passage, hold)
if left then
  return {'full', text(left)}
end
may_take_place(passages)
take_place(passages, passage, hold)
return {'entered'}
