-- One pause of all processes: if one is told to wait, all wait. Near its end one process that has waiting calls gets the probe, and
-- the others wait until its probe is answered.
--
-- KEYS: the pause (a hash), when processes asked for one without being told to, and how long (sorted sets by time).
-- ARGV: for how long the process was told to wait (0: no more than is known), for how long it has decided to, the longest pause,
-- whether its calls are held (0), it has a probe under way (1), or they start (2), whether it has calls that wait.
-- Reply: the rest of the pause, for how long the process shall wait from now on.
local PROBED = 30000000

local function pause(quiet, votes, asked, processes, from)
  local told, decided, longest, state, waiting = numbers(from, 5)
  local found = redis.call('HMGET', quiet, 'ends', 'probe', 'probe_ends')
  local ends, probe, probe_ends = tonumber(found[1] or 0), found[2] or '', tonumber(found[3] or 0)
  -- After a step back.
  ends = math.min(ends, now + longest)
  probe_ends = math.min(probe_ends, now + longest + PROBED)
  -- What the probe was answered counts for all.
  if probe == id then told = math.max(told, decided) end

  if decided > 0 then
    for _, range in ipairs({{'-inf', text(now - VOTED)}, {'(' .. text(now), '+inf'}}) do
      for _, other in ipairs(redis.call('ZRANGEBYSCORE', votes, range[1], range[2], 'LIMIT', 0, MOST)) do
        redis.call('ZREM', votes, other)
        redis.call('ZREM', asked, other)
      end
    end
    redis.call('ZADD', votes, text(now), id)
    redis.call('ZADD', asked, text(now + math.min(decided, longest)), id)
    redis.call('PEXPIRE', votes, ttl)
    redis.call('PEXPIRE', asked, ttl)
    if redis.call('ZCARD', votes) >= quorum(processes) then
      told = math.max(told, tonumber(redis.call('ZREVRANGE', asked, 0, 0, 'WITHSCORES')[2]) - now)
    end
  end
  told = math.min(told, longest)
  if told > 0 and now + told > ends then
    ends, probe = now + told, ''
  end
  if ends == 0 then return 0, 0 end

  local left, near = math.max(ends - now, 0), math.floor(period * 1.5)
  if probe == id and (leaving or state == 0 and waiting == 0) or probe ~= '' and now >= probe_ends then probe = '' end
  if probe == '' and waiting == 1 and left <= near and not leaving then
    probe, probe_ends = id, math.max(now, ends) + PROBED
  end
  -- The probe was answered, or nobody waits.
  if left == 0 and (probe == id and state == 2 or probe == '' and now >= ends + near) then
    redis.call('DEL', quiet)
    return 0, 0
  end
  redis.call('HSET', quiet, 'ends', text(ends), 'probe', probe, 'probe_ends', text(probe_ends))
  redis.call('PEXPIRE', quiet, ttl)
  if probe == id then return left, left end
  return left, math.max(left, near)
end

-- Returns the processes of the namespace that report.
local function count_processes(key)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now))
  redis.call('ZREMRANGEBYSCORE', key, '(' .. text(now + length * 1.25), '+inf')
  if leaving then
    redis.call('ZREM', key, id)
  else
    redis.call('ZADD', key, text(now + length * 1.25), id)
  end
  redis.call('PEXPIRE', key, ttl)
  return redis.call('ZCARD', key)
end

