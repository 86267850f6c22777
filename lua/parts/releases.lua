-- What release is asked for, one to 16 tokens with their verdicts. Straight down.
local asked = (#ARGV - 1) / 5
if asked ~= floor(asked) or asked < 1 or asked > 16 then
  refuse('releases')
end
local tokens, cooldowns, reasons, codes, rests, sites, seen = {}, {}, {}, {}, {}, {[0] = 12}, {}
for nth = 1, asked do
  tokens[nth] = token(ARGV[5 * nth - 4])
  cooldowns[nth], reasons[nth], codes[nth], rests[nth], sites[nth] =
    verdict_at(5 * nth - 3, sites[nth - 1])
end
