-- Gives back the places of up to 1000 passages that have ended.
--
-- KEYS: passages
-- ARGV: passage+
-- Replies:
--   left number
local passages = KEYS[1]
if #ARGV == 0 or #ARGV > 1000 then
  refuse('passages')
end
return {'left', text(call('ZREM', passages, unpack(ARGV)))}
