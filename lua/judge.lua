-- Applies the verdicts on grants of a shared pool, up to 16. One never undoes a stronger one. The
-- shun keys are those of the verdicts with a shun, in order.
--
-- KEYS: meta ready cooling leases former requests cancelled parked members uses weights strikes
--   shun*
-- ARGV: (id fence cooldown_us strike quarantine? shun_us)+
-- Replies:
--   ended (released|not_owner)+
--   uninitialised
--   too_new schema
local move = rare.moves(true)
move.check_types()

-- Keeps an endpoint from everybody, as far as nothing stronger does.
local function keep_back(id, cooldown, code)
  local till = format('%d', now + cooldown)
  local place = call('HGET', parked, id)
  if place and string.sub(place, 1, 12) == 'quarantined:' then
    return
  elseif code then
    call('HSET', parked, id, 'quarantined:' .. code)
    call('ZREM', ready, id)
    call('ZREM', cooling, id)
  elseif call('ZSCORE', cooling, id) then
    call('ZADD', cooling, 'GT', till, id)
  elseif cooldown > 0 and call('ZREM', ready, id) == 1 then
    call('ZADD', cooling, till, id)
    move.expect(now + cooldown)
  end
end

for nth = 1, asked do
  local id, fence, code = ids[nth], fences[nth], codes[nth]
  if reply[nth + 1] == 'released' then
    rare.judge(id, fence, reasons[nth], call('HGET', strikes, id), format('%d', last))
    -- Who has enabled it since that grant knew better.
    local enabled = code and tonumber(call('HGET', strikes, '@' .. id)) or 0
    keep_back(id, cooldowns[nth], fence > enabled and code or nil)
    if (rests[nth] or 0) > 0 then
      rare.shun(sites[nth], id, rests[nth])
    end
  end
end
return reply
