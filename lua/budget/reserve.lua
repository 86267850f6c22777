-- Charges a site's next slot, which is now or later, unless the site is paused. A slot that is due
-- now takes a place among the passages in flight as well, or is not charged.
--
-- KEYS: budget passages?
-- ARGV: interval_us burst probe_us empty (most passage hold_us)*
-- Replies:
--   reserved wait_us tat number probed_level entered stepped_us
--   paused left_us level stepped_us
--   probing left_us stepped_us
--   full left_us stepped_us
local passages = KEYS[2]
local interval = integer(ARGV[1], 1, LONGEST, 'interval')
local ahead = integer(ARGV[2], 1, LONGEST, 'burst') * interval
local probe_us = integer(ARGV[3], 1, LONGEST, 'probe')
if ahead > LONGEST then
  refuse('burst')
end
local most, hold
if ARGV[5] then
  most, hold = integer(ARGV[5], 1, LONGEST, 'most'), integer(ARGV[7], 1, LONGEST, 'hold')
end

if pace ~= interval and tat > now then
  -- Another rate: what is charged counts in requests and not in time.
  tat = now + math.ceil((tat - now) / max(pace, 1) * interval)
  if interval < pace then
    tat = math.min(tat, now + ahead)
  end
end
pace = interval
if now < till or level > 0 and now < probe then
  follow_clock()
  if now < till then
    return {'paused', text(till - now), text(level), text(stepped)}
  end
  return {'probing', text(probe - now), text(stepped)}
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
local enters = ARGV[5] and slot == now
if enters then
  local left = wait_for_place(passages, most, ARGV[6], hold)
  if left then
    follow_clock()
    return {'full', text(left), text(stepped)}
  end
  may_take_place(passages)
elseif ARGV[5] then
  -- Not the place is looked for now, but a key of another kind is told before the slot is charged.
  call('ZCARD', passages)
end
tat = tat + interval
if level > 0 then
  probe = slot + probe_us
end
save()
if enters then
  take_place(passages, ARGV[6], hold)
end
return {
  'reserved', text(slot - now), text(tat), text(number), text(level), enters and '1' or '0', text(stepped),
}
