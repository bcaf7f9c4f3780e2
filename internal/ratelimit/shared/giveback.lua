-- Gives back tokens of the bucket KEYS[1]: ARGV has one line, with the time at which they were taken, in seconds and
-- nanoseconds, and what they are worth in nanoseconds. What has passed since then is not given back: so much of them may
-- have run out of the bucket.
local time = redis.call('TIME')
local seconds, nanos = tonumber(time[1]), tonumber(time[2]) * 1000

local s, n = string.match(redis.call('MGET', KEYS[1])[1] or '', '^(%d+) (%d+)$')
if not s then
  return {0}
end
local ts, tn, worth = string.match(ARGV[1], '^(%d+) (%d+) (%d+)$')
local passed = (seconds - tonumber(ts)) * 1e9 + nanos - tonumber(tn)
local ahead = (tonumber(s) - seconds) * 1e9 + tonumber(n) - nanos
local back = math.min(tonumber(worth) - passed, ahead)
if passed < 0 or back <= 0 then
  return {0}
end
ahead = ahead - back
local carry = math.floor((nanos + ahead) / 1e9)
redis.call('SET', KEYS[1], string.format('%d %d', seconds + carry, nanos + ahead - carry * 1e9),
  'PX', string.format('%d', math.ceil(ahead / 1e6) + 1000))
return {back}
