package proxy

import (
	"bytes"
	"context"
	"io"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Backend implements state.Backends: what policies refer to is read through the connections that requests go by.
func (g *Gateway) Backend(name, path string) state.Backend {
	for _, b := range g.routes.backends {
		if b.name == name {
			return b
		}
	}
	if name == "" {
		if b := g.routes.find(nil, path); b != nil {
			return b
		}
	}
	return nil
}

// Kubernetes implements state.Backend.
func (b *backend) Kubernetes() bool { return !b.plain }

// Send implements state.Backend.
func (b *backend) Send(ctx context.Context, r state.Request) (state.Answer, error) {
	head, err := b.ownHead(r.Method, r.Target, len(r.Body))
	if err != nil {
		return state.Answer{}, err
	}
	answer := new(fasthttp.Response) // not from the pool: its body is handed on
	deadline, _ := ctx.Deadline()
	err = b.own.Do(&upstream.Request{
		Head: head, Body: r.Body, Idempotent: r.Method == fasthttp.MethodGet,
		Whole: max(r.Limit, 1), Deadline: deadline,
	}, answer)
	if err != nil {
		return state.Answer{}, err
	}
	b.noteRefusal(answer.StatusCode())
	return state.Answer{Code: answer.StatusCode(), Body: answer.Body()}, nil
}

// Open implements state.Backend.
func (b *backend) Open(ctx context.Context, target string) (int, io.ReadCloser, error) {
	head, err := b.ownHead(fasthttp.MethodGet, target, 0)
	if err != nil {
		return 0, nil, err
	}
	answer := new(fasthttp.Response)
	if err := b.own.Do(&upstream.Request{Head: head, Idempotent: true}, answer); err != nil {
		return 0, nil, err
	}
	b.noteRefusal(answer.StatusCode())
	stream, ok := answer.BodyStream().(*upstream.Body)
	if !ok {
		return answer.StatusCode(), io.NopCloser(bytes.NewReader(answer.Body())), nil
	}
	return answer.StatusCode(), &ownStream{stream, context.AfterFunc(ctx, stream.Interrupt)}, nil
}

// ownStream is an answer that the gateway itself reads as it comes.
type ownStream struct {
	*upstream.Body
	stop func() bool
}

// Close implements io.Closer.
func (s *ownStream) Close() error {
	s.stop()
	return s.Body.Close()
}

// ownHead is the head of a request that the gateway makes on its own account.
func (b *backend) ownHead(method, target string, length int) ([]byte, error) {
	head := make([]byte, 0, 256+len(target))
	head = append(append(append(append(head, method...), ' '), target...), " HTTP/1.1\r\nHost: "...)
	head = append(append(head, b.host...), "\r\nUser-Agent: "+via+"\r\nAccept: application/json\r\n"...)
	head, err := b.authorize(head)
	if err != nil {
		return nil, err
	}
	if method != fasthttp.MethodGet {
		head = append(head, "Content-Type: application/json\r\nContent-Length: "...)
		head = append(strconv.AppendInt(head, int64(length), 10), "\r\n"...)
	}
	return append(head, "\r\n"...), nil
}

// refer lets policies ask for what is not in the request itself.
func (x *exchange) refer() {
	x.referred.Begin(x.set, x.gateway.states, x.upstream, &x.info, x.deadline())
	x.attributes.Lookup = &x.referred
}
