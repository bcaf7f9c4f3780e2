package shared

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
)

// BenchmarkTake measures decisions beside a bare GET by go-redis, from many requests at once, as the ratio of their
// times.
func BenchmarkTake(b *testing.B) {
	server := redistest.Start(b)
	c := redis.NewClient(&redis.Options{Addr: server.Address})
	b.Cleanup(func() { _ = c.Close() })
	var n atomic.Int64
	parallel := func(b *testing.B, f func(i int64)) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				f(n.Add(1))
			}
		})
	}
	var get float64
	b.Run("peer=get", func(b *testing.B) {
		ctx := context.Background()
		parallel(b, func(i int64) {
			if err := c.Get(ctx, "gateway:"+strconv.FormatInt(i%1000, 10)).Err(); err != redis.Nil {
				b.Error(err)
			}
		})
		get = float64(b.Elapsed()) / float64(b.N)
	})
	wide := Limit{Interval: time.Nanosecond, Depth: time.Hour}
	leased := wide
	leased.Lease = 100
	for _, test := range []struct {
		name   string
		limit  Limit
		limits int
	}{{"limits=1", wide, 1}, {"limits=3", wide, 3}, {"limits=1/lease=100", leased, 1}} {
		b.Run(test.name, func(b *testing.B) {
			s, _ := open(b, server.Address, func(o *Options) { o.Metrics = nil })
			parallel(b, func(i int64) {
				demands := make([]Demand, test.limits)
				for k := range demands {
					demands[k] = Demand{Key: KeyOf(uint64(k), strconv.AppendInt(nil, i%1000, 10)), Limit: test.limit,
						Cost: 1}
				}
				if test.limit.Lease > 0 {
					demands[0].Key = Key{1} // one hot key
				}
				if passes, err := s.Take(demands); err != nil || !passes {
					b.Error(passes, err)
				}
			})
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/get, "×get")
		})
	}
}
