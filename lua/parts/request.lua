-- What acquire and assign are asked for, one to 16 tokens, each named once. Straight down: most
-- calls need no more than this.
local ttl_us, cooldown_us, prefer = ARGV[1], ARGV[2], ARGV[4]
local ttl, random, asked = tonumber(ttl_us), tonumber(ARGV[3]), tonumber(ARGV[5])
if #ARGV < 6 or not (ttl and random and asked and tonumber(cooldown_us))
  or not find(ttl_us .. cooldown_us .. ARGV[3] .. ARGV[5], '^%d+$')
  or ttl < 1 or ttl > LONGEST or tonumber(cooldown_us) > LONGEST or random > 4294967295
  or asked < 1 or asked > 16 then
  error({err = 'BADCALL terms'})
end
local tokens = {unpack(ARGV, 6, 5 + asked)}
for nth = 1, asked do
  local one = tokens[nth]
  local known = not one or #one ~= 32 or not find(one, '^%x+$')
  for other = 1, nth - 1 do
    known = known or tokens[other] == one
  end
  if known then
    error({err = 'BADCALL token'})
  end
end
