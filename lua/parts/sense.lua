-- Whether what is stored is what calls store.
local sense = {}

-- Up to 2^53, later than all times of this house.
function sense.time(score)
  local number = tonumber(score)
  return number >= 0 and number <= 9007199254740992 and number == floor(number)
end

-- By time, share or a drawn number; an infinite one is never granted, or always first.
function sense.rank(score)
  return math.abs(tonumber(score)) <= 9007199254740992
end

-- Half an assignment of the largest weight is the least.
function sense.share(score)
  local number = tonumber(score)
  return number >= 0.0005 and number <= 9007199254740992
end

function sense.weight(weight)
  return string.find(weight, '^%d+$') and tonumber(weight) >= 1 and tonumber(weight) <= 1000
end

function sense.strikes(field, record)
  return string.find(record, string.find(field, '^@') and '^%d+$' or '^%d+:%d+$')
end

local function code(word)
  return word == 'credentials' or word == 'probe' or word == 'administrator'
end

function sense.reason(reason)
  return reason == 'disabled' or code(string.match(reason, '^quarantined:(.*)$'))
end

function sense.order(order)
  local rest = string.match(order, '^disable(.*)$') or string.match(order, '^drain(.*)$')
  return rest == '' or order == 'remove'
    or code(string.match(rest or ':' .. order, '^:quarantine:(.*)$'))
end

function sense.id(id)
  return #id <= 64 and string.find(id, '^[A-Za-z0-9_-]+$')
end
