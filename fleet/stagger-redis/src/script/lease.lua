-- The leases of processes on one target, for every kind of budget: which processes have one, which want more, and which have left.
--
-- A record of a process begins with what it holds.

-- Ends the leases that were not renewed, and returns what they held. The records stay: a process may come back and report what it
-- spent. It waits for nothing any more.
local function end_leases(hash, leases, waiting, gone)
  -- After a step back.
  local last_end = now + length * 1.25
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', leases, '(' .. text(last_end), '+inf', 'LIMIT', 0, MOST)) do
    redis.call('ZADD', leases, text(last_end), other)
  end
  local returned = 0
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', text(now), 'LIMIT', 0, MOST)) do
    local record = redis.call('HGET', hash, 'p:' .. other)
    if record then
      returned = returned + tonumber(string.match(record, '^%d+'))
    end
    redis.call('ZREM', leases, other)
    redis.call('ZREM', waiting, other)
    redis.call('ZADD', gone, text(now + KEPT), other)
  end
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', gone, '-inf', text(now), 'LIMIT', 0, MOST)) do
    redis.call('HDEL', hash, 'p:' .. other)
    redis.call('ZREM', gone, other)
  end
  return returned
end

-- Notes whether the process wants more, since now or since when it waits already. Returns how many do, and how many of them have
-- waited longer.
local function queue(waiting, wants_more)
  local since, before = redis.call('ZSCORE', waiting, id), 0
  if wants_more then
    since = tonumber(since or 'inf')
    if since > now then
      -- It is new, or the clock has stepped back.
      since = now
      redis.call('ZADD', waiting, text(now), id)
    end
    before = redis.call('ZCOUNT', waiting, '-inf', '(' .. text(since))
  elseif since then
    redis.call('ZREM', waiting, id)
  end
  return math.max(1, redis.call('ZCARD', waiting)), before
end

-- Notes that the process has got something, or lacks nothing: the others come first.
local function served(waiting)
  redis.call('ZADD', waiting, 'XX', text(now), id)
end

-- Renews the lease of the process, or ends it because the process leaves. Returns the processes that have one.
local function renew_lease(hash, leases, waiting, gone, is_leaving)
  if is_leaving then
    redis.call('ZREM', leases, id)
    redis.call('ZADD', gone, text(now + KEPT), id)
  else
    redis.call('ZADD', leases, text(now + length * 1.25), id)
    redis.call('ZREM', gone, id)
  end
  for _, key in ipairs({hash, leases, waiting, gone}) do
    redis.call('PEXPIRE', key, ttl)
  end
  return redis.call('ZCARD', leases)
end

