-- Takes tokens from all buckets in KEYS, or from none.
--
-- ARGV has a line for each: depth and interval in nanoseconds, the tokens needed, the tokens wanted, and 1 if the request is
-- refused without them, else 0. A bucket holds the time at which it is empty again, as "seconds nanoseconds".
--
-- Returns whether the request passes, the time, and for each bucket how many nanoseconds it is from empty now and how many
-- tokens were taken.
local time = redis.call('TIME')
local seconds, nanos = tonumber(time[1]), tonumber(time[2]) * 1000

local values = redis.call('MGET', unpack(KEYS))
local passes = 1
local buckets = {}
for i = 1, #KEYS do
  local depth, interval, need, want, enforced = string.match(ARGV[i], '^(%d+) (%d+) (%d+) (%d+) ([01])$')
  depth, interval, need, want = tonumber(depth), tonumber(interval), tonumber(need), tonumber(want)
  local s, n = string.match(values[i] or '', '^(%d+) (%d+)$')
  local ahead = 0
  if s then
    -- No more than depth is ever taken: a time beyond it is from before the clock was set back.
    ahead = math.max(0, math.min(depth, (tonumber(s) - seconds) * 1e9 + tonumber(n) - nanos))
  end
  local free, taken = depth - ahead, 0
  if want * interval <= free then
    taken = want
  elseif need * interval <= free then
    taken = math.floor(free / interval)
  elseif enforced == '1' then
    passes = 0
  end
  buckets[i] = {ahead, taken, interval}
end

local reply = {passes, seconds, nanos}
for i, bucket in ipairs(buckets) do
  local ahead, taken, interval = unpack(bucket)
  if passes == 0 then
    taken = 0
  elseif taken > 0 then
    ahead = ahead + taken * interval
    local carry = math.floor((nanos + ahead) / 1e9)
    -- An empty bucket is as good as none; the second more is for clocks of replicas.
    redis.call('SET', KEYS[i], string.format('%d %d', seconds + carry, nanos + ahead - carry * 1e9),
      'PX', string.format('%d', math.ceil(ahead / 1e6) + 1000))
  end
  reply[2 * i + 2] = ahead
  reply[2 * i + 3] = taken
end
return reply
