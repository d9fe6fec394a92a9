-- Renews the lease of the process on one window: retries as a share of the calls of all processes.
--
-- KEYS: the window (a hash), the ends of leases, the processes that want more, and those whose lease has ended (sorted sets by time).
-- ARGV: held, want (-1: the process leaves), retries for each call, and those in addition (in millionths), the length of a slot, how long
-- the youngest slot of the process has lasted, its calls, and its retries (by slot, the youngest first).
-- Reply: lease (-1: the report was old), processes, allowed, left.
local SLOTS, CALL_SLOTS = 21, 19

local function parsed_counts(list)
  local counts = {}
  for count in string.gmatch(list or '', '%d+') do counts[#counts + 1] = tonumber(count) end
  return counts
end

local function list(counts)
  local texts = {}
  for index, count in ipairs(counts) do texts[index] = text(count) end
  return table.concat(texts, ',')
end

local function sum(counts, last)
  local total = 0
  for index = 1, last do total = total + counts[index] end
  return total
end

local function renew_window(window, leases, waiting, gone, from)
  local held, want, ratio, minimum, slot_length, age = numbers(from, 6)
  local its_calls, its_retries = ARGV[from + 7], ARGV[from + 8]
  local mine = 'p:' .. id
  local function parsed_window(record)
    local lease, number, first, second, calls, retries = string.match(record, '^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+)$')
    return tonumber(lease), tonumber(number), tonumber(first), tonumber(second), calls, retries
  end

  local found = redis.call('HMGET', window, 'slot', 'at', 'settle', 'outstanding', 'calls', 'retries', mine)
  if found[7] then
    local _, last = parsed_window(found[7])
    -- Connections are not ordered: this one was overtaken.
    if last >= report then return -1, 0, 0, 0 end
  end
  local settled, present = now + period * 1.25, math.floor(now / slot_length)
  local slot, at, settle, outstanding, known_calls, known_retries = present, now, settled, 0, {}, {}
  if found[1] and now >= tonumber(found[2]) - SECOND then
    slot, at, settle, outstanding = tonumber(found[1]), tonumber(found[2]), tonumber(found[3]), tonumber(found[4])
    known_calls, known_retries = parsed_counts(found[5]), parsed_counts(found[6])
  else
    -- There was none, or its slots are those of a clock that has stepped back: all processes report all that they have counted.
    redis.call('DEL', window, leases, waiting, gone)
    found[7] = false
  end
  -- Nobody has called for a whole lease, or the clock has jumped: all processes report before anything is granted.
  if now - at > length then settle = settled end
  settle = math.min(settle, settled)
  -- Time stands still after a small step back.
  local current = math.max(present, slot)
  local calls, retries = {}, {}
  for index = 1, SLOTS do
    calls[index] = known_calls[index - (current - slot)] or 0
    retries[index] = known_retries[index - (current - slot)] or 0
  end

  outstanding = outstanding - end_leases(window, leases, waiting, gone)
  -- The set alone was evicted: nobody is known to hold anything, and each process claims what it holds.
  if redis.call('ZCARD', leases) == 0 then
    outstanding = 0
    redis.call('DEL', waiting)
  end

  -- Slots of the process begin when they do: the youngest belongs to that of the report, and the second to that in which it ended.
  local function add(sign, first, second, its_calls, its_retries)
    local new_calls, new_retries = parsed_counts(its_calls), parsed_counts(its_retries)
    for index = 1, SLOTS do
      local its_slot = first
      if index > 1 then its_slot = second - (index - 2) end
      local place = current - its_slot + 1
      if place >= 1 and place <= SLOTS then
        calls[place] = math.max(0, calls[place] + sign * (new_calls[index] or 0))
        retries[place] = math.max(0, retries[place] + sign * (new_retries[index] or 0))
      end
    end
  end
  -- A report replaces what the process has said before.
  local record = redis.call('HGET', window, mine)
  if record then
    local lease, _, first, second, old_calls, old_retries = parsed_window(record)
    if redis.call('ZSCORE', leases, id) then outstanding = outstanding - lease end
    add(-1, first, second, old_calls, old_retries)
  end
  local second = math.floor((now - age) / slot_length) + current - present
  add(1, current, second, its_calls, its_retries)

  local allowed = math.floor((sum(calls, CALL_SLOTS) * ratio + minimum) / WHOLE)
  local lease = held
  outstanding = outstanding + lease
  local left = allowed - sum(retries, SLOTS) - outstanding
  local demanding = queue(waiting, want > 2)
  if now >= settle then
    local change = 0
    if left > 0 then
      -- Twice an equal part: what is left unleased in one period is lost when its calls become too old.
      change = math.min(math.max(want - lease, 0), left, math.max(math.floor(2 * left / demanding), 1))
    elseif left < 0 then
      -- Calls have become too old for what was leased for them.
      change = -math.min(-left, lease)
    end
    lease, outstanding, left = lease + change, outstanding + change, left - change
  end

  redis.call('HSET', window, 'slot', text(current), 'at', text(now), 'settle', text(settle), 'outstanding', text(outstanding),
    'calls', list(calls), 'retries', list(retries), mine,
    table.concat({text(lease), text(report), text(current), text(second), its_calls, its_retries}, ' '))
  return lease, renew_lease(window, leases, waiting, gone, want < 0), allowed, left
end

