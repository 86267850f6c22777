-- What acquire and assign are asked for, one to 16 tokens, each named once. Straight down: most
-- calls need no more than this.
local ttl_us, cooldown_us, prefer, tokens, seen = ARGV[1], ARGV[2], ARGV[4], {}, {}
local ttl, random, asked = tonumber(ttl_us), tonumber(ARGV[3]), tonumber(ARGV[5])
if #ARGV < 6
  or not string.find(table.concat(ARGV, ' ', 1, 3) .. ' ' .. ARGV[5], '^%d+ %d+ %d+ %d+$')
  or ttl < 1 or ttl > LONGEST or tonumber(cooldown_us) > LONGEST or random > 4294967295
  or asked < 1 or asked > 16 then
  refuse('terms')
end
for nth = 1, asked do
  local one = ARGV[5 + nth]
  if not one or #one ~= 32 or seen[one] or not string.find(one, '^%x+$') then
    refuse('token')
  end
  tokens[nth], seen[one] = one, true
end
