-- Renews the lease of the process on one token bucket.
--
-- KEYS: the bucket (a hash), the ends of leases, since when processes wait, and those whose lease has ended (sorted sets by time).
-- ARGV: epoch (0: none), spent, earned, held, want (-1: the process leaves), capacity, refill per second, initial tokens, cost.
-- Reply: epoch (0: the report was old), lease, processes, tokens.
-- Counters wrap, so that they stay exact however long a process lives.
local function difference(new, old)
  local d = (new - old) % WRAP
  if d >= WRAP / 2 then d = d - WRAP end
  return d
end

local function parsed(record)
  local lease, spent, earned, number = string.match(record, '^(%d+) (%d+) (%d+) (%d+)$')
  return tonumber(lease), tonumber(spent), tonumber(earned), tonumber(number)
end

local function renew(bucket, leases, waiting, gone, from)
  local epoch, spent, earned, held, want, capacity, refill, initial, cost = numbers(from, 9)
  local mine = 'p:' .. id

  local found = redis.call('HMGET', bucket, 'epoch', 'tokens', 'at', 'outstanding', 'reserve', 'settle', mine)
  if found[7] then
    local _, _, _, last = parsed(found[7])
    -- Connections are not ordered: this one was overtaken.
    if last >= report then return 0, 0, 0, 0 end
  end
  local current, tokens, at, outstanding, reserve, settle
  if found[1] then
    current, tokens, at = tonumber(found[1]), tonumber(found[2]), tonumber(found[3])
    outstanding, reserve, settle = tonumber(found[4]), tonumber(found[5]), tonumber(found[6])
  else
    current, tokens, at, outstanding, reserve, settle = now, initial, now, 0, 0, 0
    if epoch ~= 0 then
      -- The bucket was lost, and what it had may have been spent.
      tokens, settle = 0, now + period * 1.25
    end
    redis.call('DEL', leases, waiting, gone)
  end

  local dt = now - at
  -- Nobody has called for a whole lease, or the clock has jumped: all processes report before anything is granted.
  if dt > length then settle = now + period * 1.25 end
  -- After a step back.
  settle = math.min(settle, now + period * 1.25)
  -- The caller's clock has gone on as the store's was: less time has passed if that has jumped since the last call.
  if resync and expected >= 0 then dt = math.min(dt, expected - at) end
  dt = math.max(dt, 0)
  local settling = now < settle

  -- After a gap all leases have ended, and yet their processes hold them: what was granted leaves no room for more until all have
  -- reported. What others held returns to nobody: whether it was spent, only the process knows.
  if not settling then outstanding = outstanding - end_leases(bucket, leases, waiting, gone) end
  -- The set alone was evicted: nobody is known to hold anything, and each process claims what it holds. Those that have been killed
  -- would wait for ever, before all others.
  if redis.call('ZCARD', leases) == 0 then
    outstanding = 0
    redis.call('DEL', waiting)
  end

  if not settling then
    tokens = math.min(capacity - outstanding, tokens + reserve)
    reserve = 0
  end

  -- What is known never grows above the capacity.
  local function earn(amount)
    amount = math.max(0, math.min(amount, capacity - outstanding - tokens - reserve))
    if settling then reserve = reserve + amount else tokens = tokens + amount end
  end
  -- Processes that were without the store have refilled their own shares since their leases ended, and report it as earned.
  -- What earns less than a millionth waits for the next call.
  local counted = math.min(dt, length - period * 1.25)
  at = now
  if refill > 0 then
    local refilled = math.floor(refill * counted / SECOND)
    at = now - math.max(0, counted - math.ceil(refilled * SECOND / refill))
    earn(refilled)
  end

  -- What the process spent comes out of its lease, and the rest is a debt.
  local lease, known_spent, known_earned = 0, spent, earned
  local record = redis.call('HGET', bucket, mine)
  if record then
    lease, known_spent, known_earned = parsed(record)
    if redis.call('ZSCORE', leases, id) then
      outstanding = outstanding - lease
    elseif not redis.call('ZSCORE', gone, id) then
      -- It was evicted, and no longer counts as outstanding.
      lease = 0
    end
  end
  lease = lease - difference(spent, known_spent)
  local gained = difference(earned, known_earned)
  if lease < 0 then
    -- A fleet is without retries for at most the time of one capacity. What was spent of what processes have refilled alone is
    -- no debt: that is earned, and in reserve until all have reported.
    tokens = math.max(tokens + lease, -capacity - reserve - math.max(gained, 0))
    lease = 0
  end
  -- It holds more than was known. What it holds of a lost bucket was granted there.
  if held > lease then
    if epoch == 0 or epoch == current then tokens = tokens - (held - lease) end
    lease = held
  end
  outstanding = outstanding + lease
  earn(gained)
  outstanding = outstanding - lease

  -- The least that an idle process wants is no demand, but a retry that it lacks is.
  local left = lease
  local demanding, before = queue(waiting, want > 2 * cost or want - left >= cost)
  if lease > math.max(want, 0) then
    if settling then
      reserve = reserve + (lease - math.max(want, 0))
    else
      tokens = tokens + (lease - math.max(want, 0))
    end
    lease = math.max(want, 0)
  elseif not settling then
    -- If not each can have a retry, those that have waited longer come first.
    local part = math.max(math.floor(tokens / demanding), math.min(tokens - before * cost, cost))
    local grant = math.min(want - lease, part, tokens)
    -- Whole retries: what is left of one in each of many processes would be of use to none.
    local whole = lease + grant
    whole = whole - whole % cost
    if whole > lease then
      tokens = tokens - (whole - lease)
      lease = whole
    end
  end
  outstanding = outstanding + lease
  if lease > left or want - lease < cost then served(waiting) end

  redis.call('HSET', bucket, 'epoch', text(current), 'tokens', text(tokens), 'at', text(at), 'outstanding',
    text(outstanding), 'reserve', text(reserve), 'settle', text(settle), mine,
    text(lease) .. ' ' .. text(spent) .. ' ' .. text(earned) .. ' ' .. text(report))
  return current, lease, renew_lease(bucket, leases, waiting, gone, want < 0), tokens
end

