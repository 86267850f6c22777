-- What a repair does with tokens and those who hold leases by them.
local function claims_of(fix)
  local leases, requests, cancelled, claims = KEYS[4], KEYS[6], KEYS[7], {}

  -- The fence of a lease of this id, and the id that it is of.
  local function lease(record, id)
    local fence, of = string.match(record or '', '^(%d+):%d+:%d+:([A-Za-z0-9_-]+)$')
    return (not id or of == id) and tonumber(fence), of
  end

  -- Gives a lease back to its holder where only the way from its id to the token is lost. Of several
  -- the last grant holds.
  local claimed = {}
  function claims.take(token, record)
    local fence, id = lease(record)
    if not fence or not call('ZSCORE', leases, id) then
      return
    end
    local holder = claimed[id] or call('HGET', requests, '@' .. id)
    local theirs = holder and lease(call('HGET', requests, holder), id)
    if not theirs or theirs < fence then
      fix.step(id, 'HSET', requests, '@' .. id, token)
      claimed[id] = token
    end
  end

  function claims.request(field, record)
    local id, _ = string.match(field, '^@(.*)$'), nil
    local given_up = string.find(record, '^cancelled:%d+$') and call('ZSCORE', cancelled, field)
    local kept = field == 'note' or given_up
    if id then
      kept = call('ZSCORE', leases, id)
    elseif not kept then
      _, id = lease(record)
      kept = id and call('ZSCORE', leases, id) and call('HGET', requests, '@' .. id) == field
    end
    if not kept then
      fix.step(id and sense.id(id) and id or '-', 'HDEL', requests, field)
    end
  end

  function claims.tombstone(token)
    if not string.find(call('HGET', requests, token) or '', '^cancelled:%d+$') then
      fix.step('-', 'ZREM', cancelled, token)
    end
  end

  return claims
end
