-- The bucket: `written:tat:interval`, and once it was paused `:till:number:level:probe` too. All
-- are times in microseconds but for the number of the pause and its level, which is how many
-- there were in a row.
local written, tat, pace, till, number, level, probe = 0, 0, 0, 0, 0, 0, 0
-- By how much the server's clock was set back since the bucket was written: all moves with it.
local stepped = 0
local state = call('GET', KEYS[1])
if state then
  local pauses
  written, tat, pace, pauses = string.match(state, '^(%d+):(%d+):(%d+)(.*)$')
  if not written then
    refuse('state')
  end
  tat, pace = tonumber(tat), tonumber(pace)
  if pauses ~= '' then
    till, number, level, probe = string.match(pauses, '^:(%d+):(%d+):(%d+):(%d+)$')
    if not till then
      refuse('state')
    end
    till, number, level, probe = tonumber(till), tonumber(number), tonumber(level), tonumber(probe)
  end
  if tonumber(written) > now then
    stepped = written - now
    tat, till, probe = max(tat - stepped, 0), max(till - stepped, 0), max(probe - stepped, 0)
  end
end

local function save()
  local ends = max(tat, now)
  if level > 0 then
    ends = max(ends, till + LINGER, probe + LINGER)
  end
  if number == 0 then
    state = format('%d:%d:%d', now, tat, pace)
  else
    state = format('%d:%d:%d:%d:%d:%d:%d', now, tat, pace, till, number, level, probe)
  end
  call('SET', KEYS[1], state, 'PX', math.ceil((ends - now) / 1000) + MARGIN_MS)
end

-- Notes a clock that was set back. A call that did not would be met by the same step again, and no
-- wait would pass.
local function follow_clock()
  if stepped > 0 then
    save()
  end
end
