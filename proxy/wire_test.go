package proxy

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

// relay is the least handler: it forwards every request and reads no meaning
// into it.
type relay struct {
	client *upstream.Client
	limit  int64
	budget *bodyBudget
	whole  int64
	// endless marks the streams that a shutdown may end.
	endless bool
	heads   sync.Pool
	// ended, if set, gets the outcome of each stream.
	ended chan error
}

func newRelay(t testing.TB, config upstream.Config) *relay {
	t.Helper()
	client, err := upstream.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &relay{client: client, limit: 3 << 20, budget: newBodyBudget(64 << 20)}
}

func (r *relay) handle(ctx *fasthttp.RequestCtx, c *conn) {
	if err := r.serve(ctx, c); err != nil {
		c.ownAnswer(ctx)
		s := status.From(err)
		ctx.Response.SetStatusCode(int(s.ErrStatus.Code))
		ctx.Response.Header.SetContentType("application/json")
		ctx.Response.SetBody(status.AppendJSON(nil, &s.ErrStatus))
	}
}

func (r *relay) serve(ctx *fasthttp.RequestCtx, c *conn) error {
	if c.refusal != nil {
		return c.refusal
	}
	f := wire.Forward{Peer: c.peerIP, Proto: c.proto, Via: "admission-gateway", Length: -1}
	var body []byte
	if c.head.HasBody() || string(c.head.Method) == "POST" {
		b, err := c.readBody(r.limit, r.budget)
		if err != nil {
			return err
		}
		body, f.Length = b, int64(len(b))
	}
	read := string(c.head.Method) == "GET" || string(c.head.Method) == "HEAD"
	scratch, ok := r.heads.Get().(*[]byte)
	if !ok {
		scratch = new([]byte)
	}
	defer r.heads.Put(scratch)
	req := upstream.Request{
		Head: c.head.AppendForward((*scratch)[:0], &f), Body: body, HeadOnly: string(c.head.Method) == "HEAD", Idempotent: read, Whole: r.whole,
	}
	*scratch = req.Head
	if err := r.client.Do(&req, &ctx.Response); err != nil {
		return err
	}
	if ctx.Response.IsBodyStream() {
		_, err := c.sendStream(ctx, r.endless, nil)
		if r.ended != nil {
			r.ended <- err
		}
	}
	return nil
}

// startServer serves on a free port until the test ends; by TLS where it is a test of that.
func startServer(t testing.TB, o serverOptions, handle func(*fasthttp.RequestCtx, *conn)) (*server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if overTLS(t) && o.TLS == nil {
		o.TLS = newTLS(t, credentials.ServerFiles{}).server
	}
	if o.TLS != nil {
		addr = secureScheme + addr
	}
	s := newServer(o, handle)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, addr
}

func TestHostileInput(t *testing.T) {
	backend := newRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
	_, addr := startServer(t, serverOptions{}, r.handle)
	runHostile(t, addr, backend)
}
