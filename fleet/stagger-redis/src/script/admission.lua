-- Renews the share that the process has of the rate of one admission. The shares in force never exceed the whole.
--
-- KEYS: the shares (a hash), when they end (a sorted set).
-- ARGV: the share that the process uses until the reply (in millionths), its weight, the most that it may have, how far its
-- reservations reach (-1: the process leaves).
-- Reply: the share from now on (0: the process has left, -1: the report was old), how far the reservations of all reach, the processes.
local LONGEST_LINE = 3600000000

local function share(shares, ends, from)
  local held, weight, most, line = numbers(from, 4)
  local mine = 'p:' .. id
  local function parsed_share(record)
    local its_share, its_weight, number = string.match(record, '^(%d+) (%d+) (%d+)$')
    return tonumber(its_share), tonumber(its_weight), tonumber(number)
  end

  local found = redis.call('HMGET', shares, 'at', 'settle', 'horizon', 'used', 'weights', mine)
  if found[6] then
    local _, _, last = parsed_share(found[6])
    -- Connections are not ordered: this one was overtaken.
    if last >= report then return -1, 0, 0 end
  end
  local settling = period * 1.25
  local at, settle, horizon, used, weights
  if found[1] and redis.call('ZCARD', ends) > 0 then
    at, settle, horizon = tonumber(found[1]), tonumber(found[2]), tonumber(found[3])
    used, weights = tonumber(found[4]), tonumber(found[5])
  else
    -- What the processes hold is not known yet.
    redis.call('DEL', shares, ends)
    at, settle, horizon, used, weights, found[6] = now, now + settling, now, 0, 0, false
  end
  -- Nobody has reported for a whole lease: all do before a share grows.
  if now - at > length then settle = now + settling end
  -- After a step back.
  settle, horizon = math.min(settle, now + settling), math.min(horizon, now + LONGEST_LINE)
  local last_end = now + length * 1.25
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', ends, '(' .. text(last_end), '+inf', 'LIMIT', 0, MOST)) do
    redis.call('ZADD', ends, text(last_end), other)
  end

  local function remove(other)
    local record = redis.call('HGET', shares, 'p:' .. other)
    if record then
      local its_share, its_weight = parsed_share(record)
      used, weights = used - its_share, weights - its_weight
      redis.call('HDEL', shares, 'p:' .. other)
    end
    redis.call('ZREM', ends, other)
  end
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', text(now), 'LIMIT', 0, MOST)) do
    remove(other)
  end
  remove(id)

  local granted = 0
  if line >= 0 then
    local target = math.min(math.max(math.floor(WHOLE * weight / (weights + weight)), 1), most)
    if target <= held then
      granted = target
    elseif now < settle then
      granted = held
    else
      granted = math.max(held, math.min(target, math.max(WHOLE - used, 0)))
    end
    -- A share that shrinks is in force until the process reports the smaller one.
    local recorded = math.max(granted, held)
    used, weights = used + recorded, weights + weight
    redis.call('HSET', shares, mine, text(recorded) .. ' ' .. text(weight) .. ' ' .. text(report))
    redis.call('ZADD', ends, text(last_end), id)
    horizon = math.max(horizon, now + math.min(line, LONGEST_LINE))
  end
  redis.call('HSET', shares, 'at', text(now), 'settle', text(settle), 'horizon', text(horizon), 'used', text(used),
    'weights', text(weights))
  redis.call('PEXPIRE', shares, ttl)
  redis.call('PEXPIRE', ends, ttl)
  return granted, math.max(horizon - now, 0), redis.call('ZCARD', ends)
end

