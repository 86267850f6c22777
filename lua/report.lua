-- Tells how the server is that keeps the pool, and what time it has.
--
-- KEYS: meta
-- ARGV:
-- Replies:
--   server now_us info
return {'server', stamp, call('INFO', 'server', 'memory', 'persistence', 'replication')}
