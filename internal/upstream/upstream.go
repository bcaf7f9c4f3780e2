// Package upstream is the client of one backend: a pool of connections, a strict reader of answers, and deadlines.
//
// A write is delivered at most once. It is sent again only if no byte of it had left; a read may be sent once more,
// within a budget, if the connection ended before a byte of the answer came.
//
// A backend may have several servers. Each address is an endpoint with connections of its own; package balance decides
// which one is asked.
//
// The pool grants round trips, not connections: a slot of a link. How many slots a connection has is the affair of its
// protocol. One of HTTP/1.1 has one.
package upstream

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/descriptors"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// Client is the client of one backend. It is safe for concurrent use.
type Client struct {
	config    Config
	pool      *pool
	transport transport
	dialer    dialer
	checker   checker
	resolver  resolver
	origins   []*origin
	dialled   atomic.Uint64
	retried   atomic.Uint64
	isHTTP1   atomic.Bool        // the last connection was of HTTP/1.1
	stop      context.CancelFunc // ends lookups and health checks
}

// keepAlive notices within 45 seconds that a machine or a way to it is gone, if nothing on the way answers for it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

// New returns a client for the backend. It makes no connection yet, except for health checks.
func New(config Config) (*Client, error) {
	config.setDefaults()
	c := &Client{config: config}
	if len(config.Endpoints) == 0 {
		return nil, fmt.Errorf("an upstream must have at least one endpoint")
	}
	c.dialer = dialer{net: net.Dialer{KeepAliveConfig: keepAlive, Control: descriptors.Control}, tls: config.TLS,
		config: &c.config}
	c.dialer.memory.Budget = config.Budget
	for i, raw := range config.Endpoints {
		o, secure, err := newOrigin(raw)
		if err != nil {
			return nil, err
		}
		if i > 0 && secure != c.dialer.secure {
			return nil, fmt.Errorf("the endpoints of an upstream must all have the same scheme")
		}
		o.Position = i
		c.origins, c.dialer.secure = append(c.origins, o), secure
	}
	c.pool = newPool(&c.config)
	c.pool.slots.mayShare = c.dialer.mayBeHTTP2()
	c.transport.config, c.transport.pool = &c.config, c.pool
	c.checker = checker{&c.config, &c.dialer, c.pool}
	c.resolver = resolver{&c.config, c.pool, c.checker.watch}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.resolver.start(ctx, c.origins)
	return c, nil
}

// newOrigin reads a base URL.
func newOrigin(raw string) (o *origin, secure bool, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, false, fmt.Errorf("the endpoint '%s' must be a URL: %w", raw, err)
	}
	o = &origin{host: u.Hostname(), port: u.Port()}
	standard := "80"
	switch u.Scheme {
	case "http":
	case "https":
		secure, standard = true, "443"
	default:
		return nil, false, fmt.Errorf("the endpoint '%s' must have the scheme 'http' or 'https'", raw)
	}
	if u.Host == "" || o.host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, false, fmt.Errorf("the endpoint '%s' must be a scheme, a host and a port alone", raw)
	}
	if o.port == "" {
		o.port = standard
	}
	o.Authority = net.JoinHostPort(o.host, o.port)
	return o, secure, nil
}

// Conns returns the number of open connections and how many of them are idle.
func (c *Client) Conns() (open, idle int) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.pool.slots.open, c.pool.slots.idle
}

// Dialled returns how many connections were made so far for requests.
func (c *Client) Dialled() uint64 { return c.dialled.Load() }

// MaySendTrailers reports whether fields behind the body of a request may reach the backend: they do by HTTP/2.
func (c *Client) MaySendTrailers() bool { return c.dialer.mayBeHTTP2() }

// MayRetry takes a retry from the budget, and reports whether there is one: of a request that is sent again although
// the backend has answered it, or has failed to.
func (c *Client) MayRetry() bool { return c.pool.mayResend(time.Now()) }

// Renew has all connections made anew: idle ones are closed now, the others when they come back.
func (c *Client) Renew() { c.pool.renew() }

// Starts returns when the slow starts of the endpoints began, for a client that replaces this one.
func (c *Client) Starts() balance.Starts {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.pool.set.Starts()
}

// Close closes the idle connections and ends lookups and health checks. Exchanges in progress go on.
func (c *Client) Close() {
	c.stop()
	c.pool.close()
}

// WatchPeriod returns how long the backend is asked at most to keep a watch open that begins now; 0 for no bound.
func (c *Client) WatchPeriod() time.Duration {
	if c == nil || c.config.Watches == nil || c.dialer.mayBeHTTP2() && !c.isHTTP1.Load() {
		return 0
	}
	return c.config.Watches.Period
}
