package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestTransport: each request has a span below the one of its context, or of a trace of its own if that is sampled.
// Nothing of its query, user and headers is in it, and the server learns of it if it is to.
func TestTransport(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header["Traceparent"]...)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/teapot", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	host, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	hop := func(path, code string) string {
		return "GET client http.request.method=GET url.full=" + server.URL + path + " server.address=" + host +
			" server.port=" + port +
			" http.response.status_code=" + code
	}
	teapot := hop("/teapot", "418") + " error.type=418"
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer stop()
	for _, tt := range []struct {
		name       string
		perMillion int32
		within     bool
		ctx        context.Context
		tell       Propagation
		path       string
		want       []string
		seen       int
	}{
		{name: "sampled", perMillion: 1_000_000, tell: Propagate, path: "/teapot?token=x", want: []string{teapot},
			seen: 1},
		{name: "each hop", perMillion: 1_000_000, tell: Propagate, path: "/moved",
			want: []string{hop("/moved", "302"), teapot}, seen: 2},
		{name: "not told", perMillion: 1_000_000, path: "/teapot", want: []string{teapot}},
		{name: "not sampled", tell: Propagate, path: "/teapot"},
		{name: "of a request", within: true, tell: Propagate, path: "/teapot", want: []string{teapot}, seen: 1},
		{name: "given up", perMillion: 1_000_000, ctx: ended, path: "/teapot",
			want: []string{strings.Replace(teapot, " http.response.status_code=418 error.type=418",
				" error.type=_OTHER", 1)}},
		{name: "late", perMillion: 1_000_000, ctx: late, path: "/teapot",
			want: []string{strings.Replace(teapot, " http.response.status_code=418 error.type=418",
				" error.type=timeout", 1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen = nil
			kept := tracetest.NewInMemoryExporter()
			tracer, err := New(context.Background(),
				Options{Exporter: kept, Endpoint: "http://127.0.0.1:1", PerMillion: tt.perMillion})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tracer.Shutdown(context.Background()) }()
			ctx, parent := context.Background(), ""
			if tt.ctx != nil {
				ctx = tt.ctx
			}
			if tt.within {
				request := tracer.Begin(tracer.Look([]byte("00-"+parentID+"-b7ad6b7169203331-01"), nil), time.Now(),
					nil)
				ctx = request.Context()
				id := request.Trace().Span
				parent = fmt.Sprintf("%x", id[:])
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodGet,
				strings.Replace(server.URL, "://", "://user:secret@", 1)+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer x")
			client := &http.Client{Transport: tracer.Transport(http.DefaultTransport, tt.tell)}
			if answer, err := client.Do(r); err == nil {
				_ = answer.Body.Close()
			} else if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
				t.Error(err)
			}
			if err := tracer.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			var got, sent []string
			for _, s := range kept.GetSpans() {
				line := s.Name + " " + s.SpanKind.String()
				for _, a := range s.Attributes {
					line += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
				}
				got = append(got, line)
				sent = append(sent, "00-"+s.SpanContext.TraceID().String()+"-"+s.SpanContext.SpanID().String()+"-01")
				if by := s.Parent.SpanID(); tt.within && by.String() != parent || !tt.within && by.IsValid() {
					t.Errorf("the parent is %s, want %q", by, parent)
				}
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("the spans are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if len(seen) != tt.seen || tt.seen > 0 && strings.Join(seen, " ") != strings.Join(sent, " ") {
				t.Errorf("the server got %q, the spans are %q", seen, sent)
			}
			if r.Header.Get("Traceparent") != "" {
				t.Error("the caller's own request was changed")
			}
		})
	}
	if over := (*Tracer)(nil).Transport(http.DefaultTransport, Propagate); over != http.DefaultTransport {
		t.Error("without a tracer another transport is used")
	}
}
