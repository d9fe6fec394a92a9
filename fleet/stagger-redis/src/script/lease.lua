-- The leases of processes on one target, for every kind of budget: which processes have one, which want more, and which have left.
--
-- A record of a process begins with what it holds.

-- Ends the leases that were not renewed, and returns what they held. The records stay: a process may come back and report what it
-- spent.
local function end_leases(hash, leases, gone)
  -- After a step back.
  local last_end = now + length * 1.25
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', leases, '(' .. text(last_end), '+inf', 'LIMIT', 0, MOST)) do
    redis.call('ZADD', leases, text(last_end), other)
  end
  local returned = 0
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', text(now), 'LIMIT', 0, MOST)) do
    local record = redis.call('HGET', hash, 'p:' .. other)
    if record then
      local lease, rest = string.match(record, '^(%d+)(.*)$')
      returned = returned + tonumber(lease)
      redis.call('HSET', hash, 'p:' .. other, '0' .. rest)
    end
    redis.call('ZREM', leases, other)
    redis.call('ZADD', gone, text(now + KEPT), other)
  end
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', gone, '-inf', text(now), 'LIMIT', 0, MOST)) do
    redis.call('HDEL', hash, 'p:' .. other)
    redis.call('ZREM', gone, other)
  end
  return returned
end

-- Notes whether the process wants more, and returns how many do.
local function count_demanding(demand, wants_more)
  redis.call('ZREMRANGEBYSCORE', demand, '-inf', text(now - period * 2.5))
  redis.call('ZREMRANGEBYSCORE', demand, '(' .. text(now), '+inf')
  if wants_more then
    redis.call('ZADD', demand, text(now), id)
  else
    redis.call('ZREM', demand, id)
  end
  return math.max(1, redis.call('ZCARD', demand))
end

-- Renews the lease of the process, or ends it because the process leaves. Returns the processes that have one.
local function renew_lease(hash, leases, demand, gone, is_leaving)
  if is_leaving then
    redis.call('ZREM', leases, id)
    redis.call('ZADD', gone, text(now + KEPT), id)
  else
    redis.call('ZADD', leases, text(now + length * 1.25), id)
    redis.call('ZREM', gone, id)
  end
  for _, key in ipairs({hash, leases, demand, gone}) do
    redis.call('PEXPIRE', key, ttl)
  end
  return redis.call('ZCARD', leases)
end

