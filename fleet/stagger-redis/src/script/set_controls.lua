-- Sets the operator controls of a namespace, if nobody else has set them in the meantime, and returns them.
--
-- KEYS: the controls (a hash), the last changes (a list). ARGV: the version that the caller has read (-1: only read), the text, the
-- note, how long they stay in microseconds (-1: no end).
-- Reply: whether they were set (0 or 1), version (0: none), how long ago, how long they stay (-1: no end); then text and note.
local CONTROLS_TTL, CHANGES = 2592000000, 100
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local expected, length = tonumber(ARGV[1]), tonumber(ARGV[4])

local function text(number)
  return string.format('%.0f', number)
end

local is_set = 0
local current = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
if expected == current then
  -- Above every earlier version, also after a loss of data.
  local version, ends = math.max(now, current + 1), -1
  if length >= 0 then ends = now + length end
  redis.call('HSET', KEYS[1], 'version', text(version), 'at', text(now), 'ends', text(ends), 'text', ARGV[2], 'note', ARGV[3])
  redis.call('LPUSH', KEYS[2], ARGV[3] .. '\n' .. ARGV[2])
  redis.call('LTRIM', KEYS[2], 0, CHANGES - 1)
  redis.call('PEXPIRE', KEYS[1], CONTROLS_TTL)
  redis.call('PEXPIRE', KEYS[2], CONTROLS_TTL)
  is_set = 1
end
local found = redis.call('HMGET', KEYS[1], 'version', 'at', 'ends', 'text', 'note')
if not found[1] then return {{0, 0, 0, -1}, {}} end
local left, ends = -1, tonumber(found[3])
if ends >= 0 then left = math.max(ends - now, 0) end
return {{is_set, tonumber(found[1]), math.max(now - tonumber(found[2]), 0), left}, {found[4], found[5]}}
