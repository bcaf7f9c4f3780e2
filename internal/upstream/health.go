package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// checker asks endpoints whether they are well.
type checker struct {
	config *Config
	dialer *dialer
	pool   *pool
}

// watch begins to check an endpoint, if that is configured.
func (c *checker) watch(ctx context.Context, e *endpoint) {
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
			err := c.check(e)
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

// check asks an endpoint once; the error says what is wrong.
func (c *checker) check(e *endpoint) error {
	h := c.config.HealthCheck
	by := time.Now().Add(h.Timeout)
	cn, err := c.dialer.dial(e, h.Timeout)
	if err != nil {
		return err
	}
	defer func() { _ = cn.Close() }() // the answer is there, or is not
	if err := cn.SetDeadline(by); err != nil {
		return err
	}
	head := "GET " + h.Path + " HTTP/1.1\r\nHost: " + e.Origin.Authority + "\r\nUser-Agent: admission-gateway\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err := cn.Write([]byte(head)); err != nil {
		return err
	}
	if _, err := readHead(cn, bufio.NewReaderSize(cn, c.config.HeadBytes)); err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			return cause
		}
		return err
	}
	switch status := cn.answer.Status; {
	case h.Status != 0 && status != h.Status:
		return fmt.Errorf("the answer has the status %d, not %d", status, h.Status)
	case h.Status == 0 && (status < 200 || status > 399):
		return fmt.Errorf("the answer has the status %d", status)
	}
	return nil
}
