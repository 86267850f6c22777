-- Erases the trail of a pool that is not set up.
--
-- KEYS: meta audit
-- ARGV:
-- Replies:
--   changed number
--   exists
local meta, audit = KEYS[1], KEYS[2]
if call('EXISTS', meta) == 1 then
  return {'exists'}
end
return {'changed', text(call('UNLINK', audit))}
