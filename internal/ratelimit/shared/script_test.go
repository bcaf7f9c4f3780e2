package shared

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
)

// at is a script whose clock is given the time: microseconds since 1970, as the last argument.
func at(t *testing.T, s *script) *script {
	t.Helper()
	const clock = "local time = redis.call('TIME')"
	if strings.Count(s.text, clock) != 1 {
		t.Fatalf("the script must read the clock once:\n%s", s.text)
	}
	return newScript(strings.Replace(s.text, clock,
		"local time = {string.match(ARGV[#ARGV], '^(%d+)(%d%d%d%d%d%d)$')}", 1))
}

// run calls a script at a time.
func run(t *testing.T, c *redis.Client, s *script, now int64, keys []string, lines ...string) []int64 {
	t.Helper()
	l := call{script: s, keys: keys, lines: append(lines, fmt.Sprintf("%d", now))}
	command := redis.NewIntSliceCmd(context.Background(), l.args(true)...)
	_ = c.Process(context.Background(), command)
	reply, err := command.Result()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func client(t testing.TB, s *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Address})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// model is GCRA in Go: the time at which each bucket is empty again, in nanoseconds since 1970.
type model map[string]int64

func (m model) take(now int64, demands []Demand) (passes bool, ahead, taken []int64) {
	passes = true
	for _, d := range demands {
		a := min(max(m[string(d.Key[:])]-now, 0), int64(d.Limit.Depth))
		n := min((int64(d.Limit.Depth)-a)/int64(d.Limit.Interval), d.want())
		if n < d.Cost {
			n = 0
			passes = passes && d.Advisory
		}
		ahead, taken = append(ahead, a), append(taken, n)
	}
	for i, d := range demands {
		if !passes {
			taken[i] = 0
		}
		if taken[i] > 0 {
			ahead[i] += taken[i] * int64(d.Limit.Interval)
			m[string(d.Key[:])] = now + ahead[i]
		}
	}
	return passes, ahead, taken
}

// TestScriptAgainstModel compares the script with the model to the nanosecond, for limits of all
// sizes, with buckets that share requests, clocks that are set back, and requests that refuse what
// others would have let pass.
func TestScriptAgainstModel(t *testing.T) {
	c := client(t, redistest.Start(t))
	script, back := at(t, take), at(t, giveBack)
	random := rand.New(rand.NewPCG(7, 11))
	limit := func() Limit {
		interval := 1 + random.Int64N(1<<random.IntN(47))
		burst := 1 + random.Int64N(min(1<<random.IntN(30), int64(MaxDepth)/interval))
		return Limit{Interval: time.Duration(interval), Depth: time.Duration(interval * burst),
			Lease: 1 + random.Int64N(burst)}
	}
	for round := range 40 {
		now := int64(1_700_000_000_000_000) + random.Int64N(1e15) // µs
		m := model{}
		limits := make([]Limit, 3)
		for i := range limits {
			limits[i] = limit()
		}
		for step := range 60 {
			var demands []Demand
			var keys, lines []string
			for i, l := range limits {
				if random.IntN(3) == 0 {
					continue
				}
				burst := int64(l.Depth / l.Interval)
				d := Demand{Key: KeyOf(uint64(round), []byte{byte(i)}), Limit: l, Cost: 1 + random.Int64N(burst),
					Advisory: random.IntN(4) == 0, leasing: random.IntN(2) == 0}
				demands, keys, lines = append(demands, d), append(keys, d.Key.name("t:")), append(lines, d.line())
			}
			if len(demands) == 0 {
				continue
			}
			passes, ahead, tokens := m.take(now*1000, demands)
			want := []int64{0, now / 1e6, now % 1e6 * 1000}
			if passes {
				want[0] = 1
			}
			for i := range demands {
				want = append(want, ahead[i], tokens[i])
			}
			if got := run(t, c, script, now, keys, lines...); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("round %d, step %d: %v at %d: got %v, want %v", round, step, lines, now, got, want)
			}
			step := random.Int64N(int64(limits[0].Depth)/1000 + 2)
			if random.IntN(10) == 0 {
				step = -step
			}
			now += step
			if i := random.IntN(len(demands)); tokens[i] > 0 && random.IntN(3) == 0 {
				d, k := demands[i], string(demands[i].Key[:])
				n := 1 + random.Int64N(tokens[i])
				var l call
				l.giveBack(keys[i], taken{n, want[1], want[2]}, d.Limit.Interval)
				worth := int64(0)
				if step >= 0 {
					worth = max(0, min(n*int64(d.Limit.Interval)-step*1000, m[k]-now*1000))
				}
				m[k] -= worth
				if got := run(t, c, back, now, l.keys, l.lines...); got[0] != worth {
					t.Fatalf("round %d: gave back %d, want %d", round, got[0], worth)
				}
			}
		}
	}
}

// TestScriptKeys shows what the scripts keep: nothing once the bucket is empty, and nothing of other programs' values.
func TestScriptKeys(t *testing.T) {
	ctx := context.Background()
	c := client(t, redistest.Start(t))
	d := Demand{Key: KeyOf(1, []byte("alice")), Limit: Limit{Interval: time.Second, Depth: 10 * time.Second}, Cost: 3}
	name := d.Key.name("gateway:")
	l := call{script: take, keys: []string{name}, lines: []string{d.line()}}
	if err := c.Do(ctx, l.args(true)...).Err(); err != nil {
		t.Fatal(err)
	}
	if ttl := c.PTTL(ctx, name).Val(); ttl <= 3*time.Second || ttl > 4*time.Second {
		t.Errorf("the key lives for %v, want 3 seconds and one more", ttl)
	}
	if keys := c.Keys(ctx, "*").Val(); len(keys) != 1 || keys[0] != "gateway:"+fmt.Sprintf("%x", d.Key[:]) {
		t.Errorf("keys are %q", keys)
	}
	for _, other := range []any{"something else", "12", "1 2 3", ""} {
		if err := c.Set(ctx, name, other, 0).Err(); err != nil {
			t.Fatal(err)
		}
		got, err := c.Do(ctx, l.args(true)...).Int64Slice()
		if err != nil || got[0] != 1 || got[3] != int64(3*time.Second) {
			t.Errorf("with %q in the key: %v, %v", other, got, err)
		}
	}
	if err := c.Del(ctx, name).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.LPush(ctx, name, "x").Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Do(ctx, l.args(true)...).Int64Slice(); err != nil || got[0] != 1 {
		t.Errorf("with a list in the key: %v, %v", got, err)
	}
}

// TestKeyOf: keys of different limits and values differ.
func TestKeyOf(t *testing.T) {
	seen := map[Key]string{}
	for limit := range uint64(3) {
		for _, value := range []string{"", "\x00", "a", "\x00a", strings.Repeat("a", 1000)} {
			k := KeyOf(limit, []byte(value))
			if other, found := seen[k]; found {
				t.Errorf("%d %q has the key of %s", limit, value, other)
			}
			seen[k] = fmt.Sprintf("%d %q", limit, value)
		}
	}
}
