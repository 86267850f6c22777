-- Position of the last shun key that has been taken.
local shuns = 13

-- The verdict in the arguments from `at` on: cooldown, strike, quarantine code and shun.
local function verdict_at(at)
  local strike, code = ARGV[at + 1], ARGV[at + 2]
  local verdict = {
    cooldown = integer(ARGV[at], 0, LONGEST, 'cooldown'),
    strike = strike,
    code = code ~= '' and code or nil,
    shun = integer(ARGV[at + 3], 0, LONGEST, 'shun'),
  }
  if strike ~= 'keep' and strike ~= 'add' and strike ~= 'reset' then
    refuse('strike')
  elseif string.find(code, '[^a-z_]') then
    refuse('quarantine')
  end
  if verdict.shun > 0 then
    shuns = shuns + 1
    verdict.site = KEYS[shuns] or refuse('shun')
  end
  return verdict
end

-- Carries out what a verdict on a grant says beside the place. A strike after the grant outlives
-- its success.
local function judge(id, fence, verdict, record, last)
  if verdict.strike == 'add' then
    local count = string.match(record or '0', '^%d+') + 1
    call('HSET', strikes, id, text(math.min(count, 4294967295)) .. ':' .. last)
  elseif verdict.strike == 'reset' and record
    and tonumber(string.match(record, '%d+$')) < tonumber(fence) then
    call('HDEL', strikes, id)
  end
  if verdict.site then
    local key, till = verdict.site, now + verdict.shun
    local over = call('ZRANGE', key, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, SWEEP)
    put('ZREM', key, over)
    call('ZADD', key, 'GT', text(till), id)
    -- The key goes with its last pair: it is advice, and no state.
    local gone = text(math.ceil(till / 1000))
    call('PEXPIREAT', key, gone, 'NX')
    call('PEXPIREAT', key, gone, 'GT')
  end
end
