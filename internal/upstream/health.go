package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/h2"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/h2conn"
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
			if !descriptors.IsShortage(err) { // which says nothing of the endpoint
				c.pool.checked(e, err, time.Now())
			}
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
	cn, multiplexed, err := c.dialer.dial(context.Background(), e, h.Timeout, c.config.Protocol)
	if err != nil {
		return err
	}
	head := "GET " + h.Path + " HTTP/1.1\r\nHost: " + e.Origin.Authority +
		"\r\nUser-Agent: admission-gateway\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if multiplexed != nil {
		return c.judge(askOne(multiplexed, c.dialer.scheme(), head, by))
	}
	defer func() { _ = cn.Close() }() // the answer is there, or is not
	if err := cn.SetDeadline(by); err != nil {
		return err
	}
	if _, err := cn.Write([]byte(head)); err != nil {
		return err
	}
	if _, err := readHead(cn, bufio.NewReaderSize(cn, c.config.HeadBytes)); err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			return cause
		}
		return err
	}
	return c.judge(cn.answer.Status, nil)
}

// askOne makes one request on a connection of HTTP/2, and ends it. It returns the status of the answer.
func askOne(conn *h2conn.Conn, scheme, head string, by time.Time) (status int, err error) {
	defer func() { _ = conn.Close() }() // the answer is there, or is not
	go conn.Run(h2conn.Events{Streams: func(int) {}, Last: func() {}})
	s, err := conn.Open(h2.AppendRequest(nil, []byte(head), scheme), true)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	s.BoundHead(by)
	text, err := s.Head()
	if err != nil {
		return 0, err
	}
	var a message.ResponseHead
	err = a.Parse(text)
	return a.Status, err
}

// judge says what is wrong with an answer of that status.
func (c *checker) judge(status int, err error) error {
	switch h := c.config.HealthCheck; {
	case err != nil:
		return err
	case h.Status != 0 && status != h.Status:
		return fmt.Errorf("the answer has the status %d, not %d", status, h.Status)
	case h.Status == 0 && (status < 200 || status > 399):
		return fmt.Errorf("the answer has the status %d", status)
	}
	return nil
}
