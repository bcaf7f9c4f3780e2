package server

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// relay is the least handler: it forwards every request and reads no meaning into it.
type relay struct {
	client *upstream.Client
	limit  int64
	memory *Memory
	whole  int64
	// flow is the flow of the answers.
	flow  Flow
	heads sync.Pool
	// ended, if set, gets the outcome of each stream.
	ended chan error
}

func newRelay(t testing.TB, config upstream.Config) *relay {
	t.Helper()
	if h1test.BehindTLS(t) && config.TLS == nil {
		config.TLS = func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
	}
	client, err := upstream.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &relay{client: client, limit: 3 << 20, memory: memoryOf(64 << 20)}
}

// memoryOf returns so much memory for bodies.
func memoryOf(limit int64) *Memory {
	return NewMemory(memory.NewBudget(limit, 1), func() error { return status.ServiceUnavailable("no memory", 1) })
}

// start serves on a free port until the test ends.
func (f *relay) start(t testing.TB, o Options) (*Server, string) {
	t.Helper()
	o.Memory = f.memory
	return startServer(t, o, f.handle)
}

func (f *relay) handle(r *Request) {
	var m message.Response
	if err := f.serve(r, &m); err != nil {
		s := status.From(err)
		m.StartBody(int(s.ErrStatus.Code), "application/json", status.AppendJSON(nil, &s.ErrStatus))
		r.Send(&m)
	}
}

// reply answers a request without a body.
func reply(r *Request, code int) {
	var m message.Response
	m.Start(code)
	r.Send(&m)
}

func (f *relay) serve(r *Request, m *message.Response) error {
	if r.Refusal != nil {
		return r.Refusal
	}
	if err := r.Head.CheckStrict(); err != nil {
		r.Linger()
		return status.Coded(400, err.Error())
	}
	forward := message.Forward{Peer: r.Peer().IP, Proto: r.Peer().Proto, Via: "admission-gateway", Length: -1}
	var body []byte
	if r.Head.HasBody() || string(r.Head.Method) == "POST" {
		b, err := r.ReadBody(f.limit)
		if err != nil {
			return err
		}
		body, forward.Length = b, int64(len(b))
	}
	isHead := string(r.Head.Method) == "HEAD"
	scratch, ok := f.heads.Get().(*[]byte)
	if !ok {
		scratch = new([]byte)
	}
	defer f.heads.Put(scratch)
	req := upstream.Request{
		Head: r.Head.AppendForward((*scratch)[:0], &forward), Body: body, HeadOnly: isHead,
		Idempotent: isHead || string(r.Head.Method) == "GET", Whole: f.whole,
	}
	*scratch = req.Head
	if err := f.client.Do(&req, m); err != nil {
		return err
	}
	if !m.IsStream() {
		r.Send(m)
		return nil
	}
	_, err := r.SendStream(m, f.flow, nil, nil)
	if f.ended != nil {
		f.ended <- err
	}
	return nil
}

// startServer serves on a free port until the test ends; by TLS if the test asks for it.
func startServer(t testing.TB, o Options, handle Handler) (*Server, string) {
	t.Helper()
	return startChanged(t, o, handle, func(*Server) {})
}

// startChanged is startServer for a server that is changed before it serves.
func startChanged(t testing.TB, o Options, handle Handler, change func(*Server)) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if h1test.OverTLS(t) && o.Listeners == nil {
		o.Listeners = listeners.Any(h1test.NewTLS(t, credentials.ServerFiles{}).Server)
	}
	if o.Listeners != nil {
		addr = h1test.SecureScheme + addr
	}
	s := New(o, handle)
	change(s)
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
	backend := h1test.NewRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	_, addr := r.start(t, Options{})
	h1test.RunHostile(t, addr, backend)
}
