package ratelimit_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Each client may send one request every 10 seconds, and two at once.
func Example() {
	rules := ratelimit.NewRules([]*ratelimit.Rule{{
		Name: "per-client", Key: ratelimit.ClientAddress, Requests: 6, Period: time.Minute, Burst: 2,
	}})
	limiter := ratelimit.New(ratelimit.DefaultBuckets)
	request := &ratelimit.Request{
		Info:          &resource.Info{Verb: resource.VerbCreate, Version: "v1", Resource: "orders", IsResource: true},
		ClientAddress: netip.MustParseAddr("192.0.2.1"),
	}
	now := time.Now()
	for range 3 {
		var c ratelimit.Charges
		rules.Charge(&c, request)
		d := limiter.Decide(&c, now)
		fmt.Println(d.Allowed(), d.RetryAfter)
	}
	// Output:
	// true 0
	// true 0
	// false 10
}
