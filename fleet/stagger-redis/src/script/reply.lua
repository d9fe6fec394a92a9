-- The request lay in a buffer while the store was stopped and nobody awaits it, or the clock has jumped.
if expected >= 0 and math.abs(now - expected) > SECOND and not resync then
  return {{0, now}, {}}
end
local reply, key, from = {1, now}, 0, 14
local function add(count, ...)
  for _, value in ipairs({...}) do
    reply[#reply + 1] = value
  end
  key, from = key + count[1], from + count[2]
end
for _ = 1, tonumber(ARGV[9]) do
  add({4, 9}, renew(KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], KEYS[key + 4], from))
end
for _ = 1, tonumber(ARGV[10]) do
  add({4, 8}, renew_window(KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], KEYS[key + 4], from))
end
local pauses, breakers = tonumber(ARGV[11]), tonumber(ARGV[12])
if pauses + breakers > 0 then
  local processes = count_processes(KEYS[key + 3 * pauses + 1])
  add({0, 0}, processes)
  for _ = 1, pauses do
    add({3, 5}, pause(KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], processes, from))
  end
  key = key + 1
  for _ = 1, breakers do
    add({1, 1}, advise(KEYS[key + 1], processes, from))
  end
end
for _ = 1, tonumber(ARGV[13]) do
  add({2, 4}, share(KEYS[key + 1], KEYS[key + 2], from))
end
local texts = {}
if ARGV[14] == '1' then
  local values
  values, texts = read_controls(KEYS[#KEYS], from)
  add({1, 1}, unpack(values))
end
return {reply, texts}
