package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/state"
)

// An Account holds the gateway's credentials for the API server.
type Account interface {
	// Authorize adds what proves it to a request.
	Authorize(r *http.Request) error
	// Refused is called if the server has not taken it (401).
	Refused() bool
}

// client asks an API server on the gateway's own account. It implements state.Backend and state.Backends.
type client struct {
	http    *http.Client
	server  string
	account Account
}

// The bounds of what is asked. A list and a watch last longer than a write, and have more bytes.
const (
	maxWrite       = 30 * time.Second
	maxStream      = time.Hour // a watch ends sooner by itself
	maxStreamBytes = 1 << 30
)

func newClient(o *Options) *client {
	network := o.Network
	network.Timeout, network.MaxBytes = outbound.ByContext, maxStreamBytes
	return &client{outbound.New(network), strings.TrimSuffix(o.Server, "/"), o.Account}
}

// Backend implements state.Backends: everything is at the one API server.
func (c *client) Backend(string, string) state.Backend { return c }

// API implements state.Backend.
func (c *client) API() state.API { return state.APIServer }

// Discovery implements state.Backend.
func (c *client) Discovery() *discovery.Client { return nil }

// Send implements state.Backend.
func (c *client) Send(ctx context.Context, r state.Request) (state.Response, error) {
	return c.send(ctx, r, "application/json")
}

// send sends a request whose body has a type.
func (c *client) send(ctx context.Context, r state.Request, contentType string) (state.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWrite)
	defer cancel()
	answer, err := c.open(ctx, r.Method, r.Target, r.Body, contentType)
	if err != nil {
		return state.Response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	limit := max(r.Limit, 1)
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	switch {
	case err != nil:
		return state.Response{}, fmt.Errorf("the answer of the API server breaks off: %w", cause(err))
	case int64(len(body)) > limit:
		return state.Response{}, fmt.Errorf("the answer of the API server is larger than %d bytes", limit)
	}
	return state.Response{Code: answer.StatusCode, Body: body}, nil
}

// Open implements state.Backend.
func (c *client) Open(ctx context.Context, target string, within time.Duration) (int, io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, maxStream)
	if within == 0 {
		within = maxWrite
	}
	late := time.AfterFunc(within, cancel)
	answer, err := c.open(ctx, http.MethodGet, target, nil, "")
	if !late.Stop() {
		if err == nil { // it came at this very moment
			_ = answer.Body.Close()
		}
		err = fmt.Errorf("the API server did not answer within %s", within)
	}
	if err != nil {
		cancel()
		c.close()
		return 0, nil, err
	}
	return answer.StatusCode, &stream{ReadCloser: answer.Body, client: c, cancel: cancel}, nil
}

// stream is an answer that is read as it comes.
type stream struct {
	io.ReadCloser
	client *client
	cancel context.CancelFunc
	isCut  bool // it has ended before its end
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.isCut = s.isCut || err != nil && err != io.EOF
	return n, err
}

// Close implements io.Closer. What has cut one connection may have cut those that are idle, too.
func (s *stream) Close() error {
	defer s.cancel()
	err := s.ReadCloser.Close()
	if s.isCut {
		s.client.close()
	}
	return err
}

func (c *client) open(ctx context.Context, method, target string, body []byte,
	contentType string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "admission-gateway")
	request.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		request.Header.Set("Content-Type", contentType)
	}
	if err := c.account.Authorize(request); err != nil {
		return nil, fmt.Errorf("the gateway has no account at the API server: %w", err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the API server cannot be asked: %w", cause(err))
	}
	if answer.StatusCode == http.StatusUnauthorized {
		c.account.Refused()
	}
	return answer, nil
}

// cause returns an error without the URL that net/http puts before it.
func cause(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

func (c *client) close() { c.http.CloseIdleConnections() }
