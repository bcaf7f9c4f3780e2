package upstream

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// HealthCheck says how endpoints are asked whether they are well: by a GET on a
// connection of its own.
type HealthCheck struct {
	// Path is what is asked for, with a query if need be.
	Path string
	// Period is the time from the start of a check to the start of the next,
	// Timeout that within which the head of the answer has to be there.
	Period, Timeout time.Duration
	// Unhealthy failures in a row make an endpoint unhealthy, Healthy successes
	// in a row make it healthy again. The first check decides alone.
	Unhealthy, Healthy int
	// Status is the status of a success; zero stands for all from 200 to 399.
	Status int
}

// checks is what the health checks of an endpoint have found.
type checks struct {
	known          bool
	passed, failed int // in a row
	cause          string
}

// watchHealth begins to check an endpoint, if that is asked for.
func (c *Client) watchHealth(ctx context.Context, e *endpoint) {
	h := c.config.HealthCheck
	if h == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	if !c.pool.onRemoval(e, cancel) {
		cancel()
		return
	}
	go func() {
		defer cancel()
		for {
			started := time.Now()
			err := c.checkHealth(e)
			if ctx.Err() != nil {
				return
			}
			c.pool.checked(e, err, time.Now())
			// Replicas that start together do not ask together for ever.
			period := h.Period - time.Duration(rand.Int64N(int64(h.Period)/8+1))
			timer := time.NewTimer(max(0, period-time.Since(started)))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}()
}

// onRemoval sets what ends the health checks of an endpoint; false means that it is removed already.
func (p *pool) onRemoval(e *endpoint, stop func()) bool {
	p.mu.Lock()
	defer p.unlock()
	e.stop = stop
	return !e.removed
}

// checkHealth asks an endpoint once; the error says what is wrong.
func (c *Client) checkHealth(e *endpoint) error {
	h := c.config.HealthCheck
	by := time.Now().Add(h.Timeout)
	cn, err := c.dial(e, h.Timeout)
	if err != nil {
		return err
	}
	defer func() { _ = cn.Close() }() // nobody waits for what it could still say
	if err := cn.SetDeadline(by); err != nil {
		return err
	}
	head := "GET " + h.Path + " HTTP/1.1\r\nHost: " + e.origin.authority + "\r\nUser-Agent: admission-gateway\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err := cn.Write([]byte(head)); err != nil {
		return err
	}
	if _, failure := c.readHead(cn, bufio.NewReaderSize(cn, c.config.HeadBytes)); failure != nil {
		if failure.Cause != nil {
			return failure.Cause
		}
		return failure
	}
	switch status := cn.answer.Status; {
	case h.Status != 0 && status != h.Status:
		return fmt.Errorf("the answer has the status %d, not %d", status, h.Status)
	case h.Status == 0 && (status < 200 || status > 399):
		return fmt.Errorf("the answer has the status %d", status)
	}
	return nil
}

// checked notes the outcome of a health check.
func (p *pool) checked(e *endpoint, err error, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	if e.removed {
		return
	}
	h, k := p.config.HealthCheck, &e.checked
	first := !k.known
	k.known = true
	if err == nil {
		k.passed, k.failed = k.passed+1, 0
		if e.unhealthy && k.passed >= h.Healthy {
			k.cause, e.unhealthy = "", false
			p.tell(Change{Event: Healthy, Endpoint: e.addr})
		}
	} else {
		k.passed, k.failed, k.cause = 0, k.failed+1, err.Error()
		if !e.unhealthy && (first || k.failed >= h.Unhealthy) {
			e.unhealthy = true
			p.tell(Change{Event: Unhealthy, Endpoint: e.addr, Cause: k.cause})
		}
	}
	p.rebuild(now)
	p.serve()
}
