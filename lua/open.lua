-- Opens a pool that has been loaded.
--
-- KEYS: meta
-- ARGV: by? config_version?
-- Replies:
--   changed number
--   uninitialised
--   too_new schema
local meta = KEYS[1]
local shut = closed(call('HGET', meta, 'schema'))
if shut then
  return shut
end
allowed(meta, {HDEL = 1})
record('open')
return {'changed', text(call('HDEL', meta, 'loading'))}
