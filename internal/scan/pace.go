package scan

import (
	"context"

	"golang.org/x/time/rate"
)

// A pace bounds how many requests a second go to the backend.
type pace struct{ limiter *rate.Limiter }

// newPace allows for so many requests a second; 0 is no bound.
func newPace(qps float64) *pace {
	if qps <= 0 {
		return &pace{}
	}
	return &pace{rate.NewLimiter(rate.Limit(qps), 1)}
}

// wait waits until the next request may go.
func (p *pace) wait(ctx context.Context) error {
	if p.limiter == nil {
		return ctx.Err()
	}
	return p.limiter.Wait(ctx)
}
