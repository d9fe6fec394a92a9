-- How many processes have their breaker open, and whether that is enough to advise the others.
--
-- KEYS: these processes (a sorted set by the time of their last report). ARGV: whether that of the process is open (0 or 1).
-- Reply: how many, whether they are enough (0 or 1).
local function advise(open, processes, from)
  redis.call('ZREMRANGEBYSCORE', open, '-inf', text(now - VOTED))
  redis.call('ZREMRANGEBYSCORE', open, '(' .. text(now), '+inf')
  if numbers(from, 1) == 1 and not leaving then
    redis.call('ZADD', open, text(now), id)
  else
    redis.call('ZREM', open, id)
  end
  redis.call('PEXPIRE', open, ttl)
  local count, enough = redis.call('ZCARD', open), 0
  if count >= quorum(processes) then enough = 1 end
  return count, enough
end

