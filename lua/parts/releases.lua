-- What release is asked for, one to 16 tokens with their verdicts. Straight down.
local width, asked, tokens = 5, (#ARGV - 1) / 5, {''}
if asked ~= floor(asked) or asked < 1 or asked > 16 then
  error({err = 'BADCALL releases'})
end
for nth = 1, asked do
  local one = ARGV[5 * nth - 4]
  if #one ~= 32 or not find(one, '^%x+$') then
    error({err = 'BADCALL token'})
  end
  tokens[nth] = one
end
