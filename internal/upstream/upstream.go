// Package upstream is the client of one backend: a pool of connections, a
// strict reader of answers, and deadlines.
//
// A write is delivered at most once. It is sent again only where no byte of it
// had left; a read may be sent once more where the connection ended before a
// byte of the answer came.
package upstream

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// What Config leaves zero.
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultAnswerTimeout  = 60 * time.Second
	DefaultBodyTimeout    = 60 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
	DefaultMaxWait        = time.Second
	DefaultMaxConns       = 4096
	DefaultHeadBytes      = 16 << 10
	DefaultRetryAfter     = 1
)

// SmallBody is the size up to which an answer of known length is read whole
// instead of being streamed.
const SmallBody = 64 << 10

// Config describes one backend.
type Config struct {
	// Endpoints are base URLs (http://host:port), all of one scheme and
	// without a path. New connections go to them in turn; one that cannot be
	// reached is passed over.
	Endpoints []string
	// TLS is used with endpoints of the scheme https; nil means the defaults.
	TLS *tls.Config
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
	// MaxConns is the largest number of connections, MaxWait how long a
	// request waits for one when all are in use.
	MaxConns int
	MaxWait  time.Duration
	// HeadBytes is the size of the largest head of an answer.
	HeadBytes int
	// RetryAfter, in seconds, is what a client is told when the backend cannot
	// be reached or is too slow.
	RetryAfter int
	// OnError, if set, learns of each failed exchange with its cause, which
	// clients are not told.
	OnError func(*Error)
}

// Client is the client of one backend. It is safe for concurrent use.
type Client struct {
	config  Config
	pool    fasthttp.HostClient
	dialer  net.Dialer
	addrs   []string
	turn    atomic.Uint32
	secure  bool
	dialled atomic.Uint64
	scratch sync.Pool // of *[smallRequest]byte
}

// New returns a client for the backend. It makes no connection yet.
func New(config Config) (*Client, error) {
	setDefault(&config.ConnectTimeout, DefaultConnectTimeout)
	setDefault(&config.AnswerTimeout, DefaultAnswerTimeout)
	setDefault(&config.BodyTimeout, DefaultBodyTimeout)
	setDefault(&config.IdleTimeout, DefaultIdleTimeout)
	setDefault(&config.MaxWait, DefaultMaxWait)
	setDefault(&config.MaxConns, DefaultMaxConns)
	setDefault(&config.HeadBytes, DefaultHeadBytes)
	setDefault(&config.RetryAfter, DefaultRetryAfter)
	c := &Client{config: config}
	if len(config.Endpoints) == 0 {
		return nil, fmt.Errorf("an upstream must have at least one endpoint")
	}
	for i, raw := range config.Endpoints {
		addr, secure, err := endpoint(raw)
		if err != nil {
			return nil, err
		}
		if i > 0 && secure != c.secure {
			return nil, fmt.Errorf("the endpoints of an upstream must all have the same scheme")
		}
		c.addrs, c.secure = append(c.addrs, addr), secure
	}
	c.dialer = net.Dialer{Timeout: config.ConnectTimeout, KeepAlive: 15 * time.Second}
	c.pool = fasthttp.HostClient{
		Addr:                strings.Join(c.addrs[:1], ","),
		DialTimeout:         c.dial,
		MaxConns:            config.MaxConns,
		MaxConnWaitTimeout:  config.MaxWait,
		MaxIdleConnDuration: config.IdleTimeout,
		ReadBufferSize:      config.HeadBytes,
		// The connection used last is the one least likely to be stale.
		ConnPoolStrategy: fasthttp.LIFO,
	}
	return c, nil
}

// endpoint splits a base URL into the address to dial and its scheme.
func endpoint(raw string) (addr string, secure bool, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", false, fmt.Errorf("the endpoint '%s' must be a URL: %w", raw, err)
	}
	port := ":80"
	switch u.Scheme {
	case "http":
	case "https":
		secure, port = true, ":443"
	default:
		return "", false, fmt.Errorf("the endpoint '%s' must have the scheme 'http' or 'https'", raw)
	}
	if u.Host == "" || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return "", false, fmt.Errorf("the endpoint '%s' must be a scheme, a host and a port alone", raw)
	}
	if u.Port() != "" {
		return u.Host, secure, nil
	}
	return u.Host + port, secure, nil
}

func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Conns returns the number of open connections and how many of them are idle.
func (c *Client) Conns() (open, idle int) {
	return c.pool.ConnsCount(), c.pool.IdleConnsCount()
}

// Dialled returns how many connections were made so far.
func (c *Client) Dialled() uint64 { return c.dialled.Load() }

// Close closes the idle connections. Exchanges in progress go on.
func (c *Client) Close() { c.pool.CloseIdleConnections() }
