-- The verdicts, which are the last four of each `width` arguments: cooldown, strike, quarantine
-- code and shun. The keys of shuns follow those of the state. `mild` is whether none of them keeps an
-- endpoint from being leased again but by its cooldown.
local cooldowns, reasons, codes, rests, sites, mild, key = {0}, {''}, {}, {}, {}, true, 12
local words, cooldown = nil, nil
for nth = 1, asked do
  local at, wrong = width * nth - 3, nil
  local strike, code, rest = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  -- Mostly that of the one before.
  if ARGV[at] ~= words then
    words, cooldown = ARGV[at], tonumber(ARGV[at])
    wrong = not (find(words, '^%d+$') and cooldown <= LONGEST) and 'cooldown'
  end
  cooldowns[nth], reasons[nth] = cooldown, strike
  if strike ~= 'reset' and strike ~= 'keep' and strike ~= 'add' then
    wrong = wrong or 'strike'
  end
  if code ~= '' then
    codes[nth], mild = code, false
    wrong = wrong or find(code, '[^a-z_]') and 'quarantine'
  end
  if rest ~= '0' then
    key = key + 1
    rests[nth], sites[nth], mild = tonumber(rest), KEYS[key], false
    wrong = wrong
      or not (find(rest, '^%d+$') and rests[nth] <= LONGEST and sites[nth]) and 'shun'
  end
  if wrong then
    error({err = 'BADCALL ' .. wrong})
  end
end
