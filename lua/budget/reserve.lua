-- Charges a site's next slot, which is now or later, unless the site is paused. A slot that is due
-- now takes a place among the passages in flight as well, or is not charged.
--
-- KEYS: budget passages?
-- ARGV: interval_us burst probe_us empty (most passage hold_us)*
-- Replies:
--   reserved wait_us tat number probed_level entered stepped_us
--   paused left_us level
--   probing left_us level
--   full left_us
local passages = KEYS[2]
local interval = integer(ARGV[1], 1, LONGEST, 'interval')
local ahead = integer(ARGV[2], 1, LONGEST, 'burst') * interval
local probe_us = integer(ARGV[3], 1, LONGEST, 'probe')
if ahead > LONGEST then
  refuse('burst')
end

if pace ~= interval and tat > now then
  -- Another rate: what is charged counts in requests and not in time.
  tat = now + math.ceil((tat - now) / max(pace, 1) * interval)
  if interval < pace then
    tat = math.min(tat, now + ahead)
  end
end
pace = interval
if now < till then
  return {'paused', text(till - now), text(level)}
elseif level > 0 and now < probe then
  return {'probing', text(probe - now), text(level)}
end

local full = ahead - interval
if ARGV[4] == '1' then
  tat = max(tat, now + ahead)
elseif level > 0 then
  tat = max(tat, now + full)
elseif tat < now then
  tat = now
end
local slot = max(now, tat - full)
tat = tat + interval
if level > 0 then
  probe = slot + probe_us
end

local entered = '0'
if passages then
  local most, hold = integer(ARGV[5], 1, LONGEST, 'most'), integer(ARGV[7], 1, LONGEST, 'hold')
  follow_clock(passages)
  if slot == now then
    local left = wait_for_place(passages, most, ARGV[6])
    if left then
      return {'full', text(left)}
    end
    entered = '1'
    save()
    take_place(passages, ARGV[6], hold)
  end
end
if entered == '0' then
  save()
end
return {'reserved', text(slot - now), text(tat), text(number), text(level), entered, text(stepped)}
