-- Ends a site's pause, and forgets those before it. What is charged stays charged.
--
-- KEYS: budget
-- ARGV:
-- Replies:
--   changed number
if level == 0 then
  return {'changed', '0'}
end
level, till, probe = 0, 0, 0
save()
return {'changed', '1'}
