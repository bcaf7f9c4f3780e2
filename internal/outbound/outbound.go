// Package outbound makes the HTTP clients with which the gateway itself asks servers: for bundles and images, the keys
// of issuers, sinks of events, what policies ask with http.send, and what the commands ask. Requests of clients go to
// backends by internal/upstream instead.
//
// No other package makes a client or a transport, so that these rules hold for all of them. What departs from a rule is
// a field of Options.
//
//   - Proxies: a server is asked by the proxy that the environment names for it (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), as
//     Kubernetes' own clients do. Options.Direct asks it without one, Options.Proxy by another.
//   - Redirects: none is followed; the caller gets it as the answer. With Options.Redirects those of GET and HEAD are,
//     at most five of them, and none leads from TLS to plain HTTP. The next server does not learn from where.
//   - Bounds: an answer has at most Options.MaxBytes, and a request ends after Options.Timeout or by the deadline of
//     its
//     context. No request is without either. Nothing asks for compressed answers, so that the bound is what is read.
//   - Protocol: HTTP/1.1, with TLS 1.2 at least. When the configuration of TLS changes, connections are made anew. An
//     HTTP/2 connection that has died would take all requests with it until the kernel gives it up.
//   - Spans: Options.Trace lays the span of a request around it, or else the request's context does, by WithTrace.
package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Options configure a client. The zero value is a client with the rules of the package and its default bounds.
type Options struct {
	// Timeout bounds a request, up to the last byte of its answer; DefaultTimeout if it is zero. The
	// deadline of the request's context counts too, and is the only one with ByContext.
	Timeout time.Duration
	// MaxBytes bounds the body of an answer; DefaultMaxBytes if it is zero. Reading more is a
	// *TooLargeError.
	MaxBytes int64
	// TLS returns how connections are made by TLS. It is asked for each request, and another pointer
	// means another configuration. If it is nil or returns nil, the system's authorities count.
	TLS func() *tls.Config
	// Direct says that no proxy of the environment is asked.
	Direct bool
	// Proxy names the proxy for a request, if it is not the environment that does.
	Proxy func(*http.Request) (*url.URL, error)
	// Redirects says that redirects of GET and HEAD are followed.
	Redirects bool
	// Trace adds spans to the requests of a transport; if nil, the contexts of requests decide.
	Trace Trace
}

// A Trace lays spans around the requests of a transport.
type Trace = func(http.RoundTripper) http.RoundTripper

// traced is the key of a Trace in a context.
type traced struct{}

// WithTrace returns a context for what is asked for a client's request that has spans.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traced{}, t)
}

const (
	// DefaultTimeout bounds a request if Options do not.
	DefaultTimeout = 10 * time.Second
	// ByContext is the Timeout of a client whose requests are bounded by their contexts. It sends none
	// whose context has no deadline.
	ByContext time.Duration = -1
	// DefaultMaxBytes bounds an answer if Options do not.
	DefaultMaxBytes = 1 << 20

	// maxRedirects bounds how often a server may send a client elsewhere.
	maxRedirects = 5
	// connectTimeout bounds how long a connection may take, and then its handshake.
	connectTimeout = 10 * time.Second
	// idleTimeout is how long a connection waits for the next request, of maxIdle at most.
	idleTimeout = 90 * time.Second
	maxIdle     = 2
)

// keepAlive notices within 45 seconds that a machine or a way to it is gone, if nothing on the way answers for it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

// A TooLargeError is the error of reading an answer beyond Options.MaxBytes.
type TooLargeError struct{ MaxBytes int64 }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the answer must have at most %d bytes", e.MaxBytes)
}

// errUnbounded is the error of a request without a deadline.
var errUnbounded = errors.New("outbound: the context of the request has no deadline")

// New returns a client.
func New(o Options) *http.Client {
	c := &http.Client{Timeout: o.Timeout, Transport: newRules(&connections{options: o}, o), CheckRedirect: followNone}
	switch o.Timeout {
	case 0:
		c.Timeout = DefaultTimeout
	case ByContext:
		c.Timeout = 0
	}
	if o.Redirects {
		c.CheckRedirect = followReads
	}
	return c
}

// Confine applies the rules to a transport that a library has made for a client of its own, which
// has the timeout and says whether redirects are followed: of Options, Timeout, TLS and Redirects
// do not count. A nil transport means one of this package. No connection is used twice, so the
// result need not be kept.
func Confine(t *http.Transport, o Options) http.RoundTripper {
	if t == nil {
		t = newTransport(&o)
	}
	t.Proxy = o.proxy()
	t.Protocols = http1()
	t.DisableKeepAlives = true
	return newRules(t, o)
}

func (o *Options) proxy() func(*http.Request) (*url.URL, error) {
	switch {
	case o.Direct:
		return nil
	case o.Proxy != nil:
		return o.Proxy
	}
	return http.ProxyFromEnvironment
}

func http1() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}

// newTransport returns a transport that trusts the system's authorities.
func newTransport(o *Options) *http.Transport {
	return &http.Transport{
		Proxy: o.proxy(), Protocols: http1(), DisableCompression: true,
		DialContext:         (&net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive}).DialContext,
		TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: idleTimeout, MaxIdleConns: maxIdle,
	}
}

// connections makes new connections when the configuration of TLS has changed.
type connections struct {
	options Options

	mu   sync.Mutex
	by   *tls.Config
	over *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (c *connections) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.transport().RoundTrip(r)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (c *connections) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		c.over.CloseIdleConnections()
	}
}

func (c *connections) transport() *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	var by *tls.Config
	if c.options.TLS != nil {
		by = c.options.TLS()
	}
	if c.over != nil && by == c.by {
		return c.over
	}
	if c.over != nil {
		c.over.CloseIdleConnections()
	}
	c.by, c.over = by, newTransport(&c.options)
	if by != nil {
		c.over.TLSClientConfig = by.Clone()
		c.over.TLSClientConfig.MinVersion = max(by.MinVersion, tls.VersionTLS12)
	}
	return c.over
}

// followNone is a CheckRedirect of http.Client.
func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// followReads is a CheckRedirect of http.Client. The number of redirects and their targets are
// limited by rules, because clients of libraries pass them too.
func followReads(to *http.Request, before []*http.Request) error {
	if m := before[0].Method; m != http.MethodGet && m != http.MethodHead {
		return http.ErrUseLastResponse
	}
	to.Header.Del("Referer") // its query may hold a credential
	return nil
}

// rules apply what holds for each request.
type rules struct {
	over       http.RoundTripper
	connection http.RoundTripper // what over ends in
	maxBytes   int64
	byContext  bool
	isTraced   bool // over lays spans
}

func newRules(t http.RoundTripper, o Options) *rules {
	r := &rules{over: t, connection: t, maxBytes: o.MaxBytes, byContext: o.Timeout == ByContext}
	if r.maxBytes == 0 {
		r.maxBytes = DefaultMaxBytes
	}
	if o.Trace != nil {
		r.over, r.isTraced = o.Trace(t), true
	}
	return r
}

// RoundTrip implements http.RoundTripper.
func (s *rules) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, bounded := r.Context().Deadline(); s.byContext && !bounded {
		return nil, errUnbounded
	}
	if err := checkRedirects(r); err != nil {
		return nil, err
	}
	over := s.over
	if t, ok := r.Context().Value(traced{}).(Trace); ok && !s.isTraced {
		over = t(over)
	}
	answer, err := over.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, left: s.maxBytes, most: s.maxBytes}
	return answer, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (s *rules) CloseIdleConnections() {
	if t, ok := s.connection.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// checkRedirects returns an error if redirects have led to a request that may not be sent.
func checkRedirects(r *http.Request) error {
	followed := 0
	for by := r.Response; by != nil && by.Request != nil; by = by.Request.Response {
		if followed++; followed > maxRedirects {
			return fmt.Errorf("the server redirects more than %d times", maxRedirects)
		}
		if by.Request.URL.Scheme == "https" && r.URL.Scheme != "https" {
			return errors.New("the server redirects to an address without TLS")
		}
	}
	return nil
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	left, most int64
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, &TooLargeError{b.most}
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, &TooLargeError{b.most}
	}
	return n, err
}
