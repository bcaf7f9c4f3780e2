// Package upstream is the client of one backend: a pool of connections, a
// strict reader of answers, and deadlines.
//
// A write is delivered at most once. It is sent again only where no byte of it
// had left; a read may be sent once more, within a budget, where the connection
// ended before a byte of the answer came.
//
// A backend may have several servers. Each address is an endpoint with
// connections of its own; an exchange goes to the less busy one of two that are
// drawn at random. Endpoints that fail several times in a row, or their health
// checks, are passed over for a while, unless all do.
package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// What Config leaves zero.
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultAnswerTimeout  = 60 * time.Second
	DefaultBodyTimeout    = 60 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
	DefaultMaxWait        = time.Second
	DefaultMaxConns       = 4096
	DefaultMaxPending     = 4096
	DefaultHeadBytes      = 16 << 10
	DefaultRetryAfter     = 1

	DefaultRetryPercent     = 20
	DefaultRetriesPerSecond = 10

	DefaultEjection          = 10 * time.Second
	DefaultMaxEjection       = 5 * time.Minute
	DefaultMaxEjectedPercent = 50
	DefaultOpen              = 5 * time.Second
	DefaultMaxOpen           = time.Minute
	DefaultCheckPeriod       = 10 * time.Second
	DefaultCheckTimeout      = 2 * time.Second
)

// SmallBody is the size up to which an answer of known length is read whole
// instead of being streamed.
const SmallBody = 64 << 10

// Config describes one backend.
type Config struct {
	// Endpoints are base URLs (http://host:port), all of one scheme and
	// without a path.
	Endpoints []string
	// ResolvePeriod is how often the host names of Endpoints are looked up, each
	// of whose addresses is an endpoint then. Zero means that a name is one
	// endpoint, looked up for each connection, as localhost always is.
	ResolvePeriod time.Duration
	// Resolver looks names up; nil means the system's.
	Resolver Resolver
	// TLS says how connections to endpoints of the scheme https are made, asked
	// for each of them; nil means the defaults. Renew follows a change.
	TLS func() *tls.Config
	// ConnectTimeout bounds the making of a connection, TLS included.
	ConnectTimeout time.Duration
	// AnswerTimeout bounds the time from the start of a request to the end of
	// the answer's head.
	AnswerTimeout time.Duration
	// BodyTimeout bounds each pause within the body of an answer of known
	// length, or one that is read whole.
	BodyTimeout time.Duration
	// StreamTimeout bounds each pause within a body of unknown length; zero
	// means none: a watch may be silent for as long as nothing happens, and a
	// dead peer is found by TCP keep-alive.
	StreamTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept.
	IdleTimeout time.Duration
	// MaxConns is the largest number of connections, and so of exchanges at a
	// time; MaxConnsPerEndpoint that to one endpoint, zero for no bound of its
	// own. MaxWait is how long a request waits for a connection when all are in
	// use, MaxPending how many may wait.
	MaxConns            int
	MaxConnsPerEndpoint int
	MaxWait             time.Duration
	MaxPending          int
	// Ejection, HealthCheck, Retries and Breaker deal with endpoints that fail.
	// Their zero values do nothing, but for nil Retries: the default.
	Ejection    Ejection
	HealthCheck *HealthCheck
	Retries     *RetryBudget
	Breaker     Breaker
	// HeadBytes is the size of the largest head of an answer.
	HeadBytes int
	// RetryAfter, in seconds, is what a client is told when the backend cannot
	// be reached or is too slow.
	RetryAfter int
	// Overloaded, if set, is told of each request that found all connections in
	// use, and returns what its client is told instead of RetryAfter.
	Overloaded func(at time.Time) (retryAfter int)
	// OnError, if set, learns of each failed exchange with its cause, which
	// clients are not told.
	OnError func(*Error)
	// OnChange, if set, learns of what changes about the endpoints. It may be
	// called by several goroutines at once.
	OnChange func(Change)
}

// Client is the client of one backend. It is safe for concurrent use.
type Client struct {
	config  Config
	pool    *pool
	origins []*origin
	dialer  net.Dialer
	secure  bool
	dialled atomic.Uint64
	retried atomic.Uint64
	stop    context.CancelFunc // ends lookups and health checks
	readers sync.Pool          // of *bufio.Reader
	scratch sync.Pool          // of *[smallRequest]byte
}

// New returns a client for the backend. It makes no connection yet, but for
// health checks.
func New(config Config) (*Client, error) {
	setDefault(&config.ConnectTimeout, DefaultConnectTimeout)
	setDefault(&config.AnswerTimeout, DefaultAnswerTimeout)
	setDefault(&config.BodyTimeout, DefaultBodyTimeout)
	setDefault(&config.IdleTimeout, DefaultIdleTimeout)
	setDefault(&config.MaxWait, DefaultMaxWait)
	setDefault(&config.MaxConns, DefaultMaxConns)
	setDefault(&config.MaxPending, DefaultMaxPending)
	setDefault(&config.HeadBytes, DefaultHeadBytes)
	setDefault(&config.RetryAfter, DefaultRetryAfter)
	setDefault(&config.Ejection.Base, DefaultEjection)
	setDefault(&config.Ejection.Most, max(DefaultMaxEjection, config.Ejection.Base))
	setDefault(&config.Ejection.Percent, DefaultMaxEjectedPercent)
	setDefault(&config.Breaker.Open, DefaultOpen)
	setDefault(&config.Breaker.Most, max(DefaultMaxOpen, config.Breaker.Open))
	if h := config.HealthCheck; h != nil {
		own := *h
		config.HealthCheck = &own
		setDefault(&own.Period, DefaultCheckPeriod)
		setDefault(&own.Timeout, DefaultCheckTimeout)
	}
	if config.Retries == nil {
		config.Retries = &RetryBudget{Percent: DefaultRetryPercent, PerSecond: DefaultRetriesPerSecond}
	}
	if config.Resolver == nil {
		config.Resolver = net.DefaultResolver
	}
	c := &Client{config: config}
	if len(config.Endpoints) == 0 {
		return nil, fmt.Errorf("an upstream must have at least one endpoint")
	}
	origins := make([]*origin, len(config.Endpoints))
	for i, raw := range config.Endpoints {
		o, secure, err := newOrigin(raw)
		if err != nil {
			return nil, err
		}
		if i > 0 && secure != c.secure {
			return nil, fmt.Errorf("the endpoints of an upstream must all have the same scheme")
		}
		o.position = i
		origins[i], c.secure = o, secure
	}
	c.dialer = net.Dialer{KeepAlive: 15 * time.Second}
	c.pool = newPool(&c.config)
	c.origins = origins
	c.start()
	return c, nil
}

// start puts the endpoints in force that are known, and begins to look up the
// others.
func (c *Client) start() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	for _, o := range c.origins {
		if o.fixed = c.config.ResolvePeriod <= 0 || o.isOne(); !o.fixed {
			c.pool.lookup.unknown++
		}
	}
	for _, o := range c.origins {
		if !o.fixed {
			go c.follow(ctx, o)
			continue
		}
		for _, e := range c.pool.set(o, []string{o.authority}, time.Now()) {
			c.watchHealth(ctx, e)
		}
	}
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
	if u.Host == "" || o.host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, false, fmt.Errorf("the endpoint '%s' must be a scheme, a host and a port alone", raw)
	}
	if o.port == "" {
		o.port = standard
	}
	o.authority = net.JoinHostPort(o.host, o.port)
	return o, secure, nil
}

func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Conns returns the number of open connections and how many of them are idle.
func (c *Client) Conns() (open, idle int) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.pool.open, c.pool.idle
}

// Dialled returns how many connections were made so far for requests.
func (c *Client) Dialled() uint64 { return c.dialled.Load() }

// Renew has all connections made anew: those that are idle are closed now, the
// others when they come back.
func (c *Client) Renew() { c.pool.renew() }

// Close closes the idle connections and ends lookups and health checks.
// Exchanges in progress go on.
func (c *Client) Close() {
	c.stop()
	c.pool.close()
}
