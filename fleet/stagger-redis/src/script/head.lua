-- One report of a process on everything that it shares. This file, one for each kind of guard, and `reply.lua` are one script.
--
-- Amounts are whole millionths of a token, times whole microseconds.
--
-- KEYS: four for each token bucket and each window, three for each quiet period, one for the processes of the
-- namespace if there is a quiet period or a breaker, one for each breaker, two for each admission, and one for the operator controls.
-- ARGV: id, report, the time that the process expects (-1: none), resync (0 or 1), length of a lease, period, time to live in
-- milliseconds, whether the process leaves (0 or 1), token buckets, windows, quiet periods, breakers, admissions,
-- whether it obeys operator controls; then the arguments of each, as its file says.
-- Reply: the numbers, which are status (0: ask again, 1: done), time, and the replies to each; and the texts.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local id, report, expected, resync = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local length, period, ttl, leaving = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8] == '1'
local SECOND, WHOLE, KEPT, MOST, WRAP = 1000000, 1000000, 600000000, 100, 4503599627370496

-- How long the view of a process counts, and how many processes must have it before it holds for all.
local VOTED = 10000000

local function quorum(processes)
  return math.max(2, math.ceil(processes / 10))
end

local function text(number)
  return string.format('%.0f', number)
end

-- The values of the arguments after the first `from`.
local function numbers(from, count)
  local values = {}
  for i = 1, count do values[i] = tonumber(ARGV[from + i]) end
  return unpack(values)
end

