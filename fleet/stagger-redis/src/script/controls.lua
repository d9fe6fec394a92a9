-- Reads the operator controls, which all processes of the namespace obey.
--
-- KEYS: the controls (a hash). ARGV: the version that the process has (0: none).
-- Reply: version (0: none), how long ago they were set, how long they stay (-1: no end); with another version also the text and the
-- note of the change.
local CONTROLS_TTL = 2592000000

local function read_controls(key, from)
  local found = redis.call('HMGET', key, 'version', 'at', 'ends')
  if not found[1] then return {0, 0, -1}, {} end
  redis.call('PEXPIRE', key, CONTROLS_TTL)
  local version, at, ends = tonumber(found[1]), tonumber(found[2]), tonumber(found[3])
  local left = -1
  if ends >= 0 then left = math.max(ends - now, 0) end
  local texts = {}
  if version ~= numbers(from, 1) then texts = redis.call('HMGET', key, 'text', 'note') end
  return {version, math.max(now - at, 0), left}, texts
end

