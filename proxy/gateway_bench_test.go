package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

// The request and policies of `make bench`: a status to strip, three defaults to set, a schema, five rules to hold.
const benchPolicies, benchObject = "../bench/policies", "../bench/workload.json"

// BenchmarkGateway is a whole request through the gateway over loopback sockets; only the way allocates.
func BenchmarkGateway(b *testing.B) {
	object, err := os.ReadFile(benchObject)
	if err != nil {
		b.Fatal(err)
	}
	const created = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
	ok := strings.Replace(created, "201 Created", "200 OK", 1)
	path := "/apis/bench.example.com/v1/namespaces/team-a/workloads"
	post := string(scenario.Wire([]byte("POST " + path + " HTTP/1.1\nHost: gw\nUser-Agent: bench\nContent-Type: application/json\nContent-Length: *\n\n" + string(object))))
	get := "GET " + path + "/w1 HTTP/1.1\r\nHost: gw\r\nUser-Agent: bench\r\nAccept: application/json\r\n\r\n"
	for _, c := range []struct {
		name, policies, request, answer string
		with                            func(testing.TB, *Gateway)
	}{
		{"GET", "", get, ok, nil},
		{"POST/no-policies", "", post, created, nil},
		{"POST/undescribed", "../bench/undescribed", post, created, nil},
		{"POST/documented", "../bench/documented", post, created, nil},
		{"POST/full-admission", benchPolicies, post, created, nil},
		{"POST/access-log", benchPolicies, post, created, logRefusals},
		{"POST/unsampled-traces", benchPolicies, post, created, traceNone},
		{"POST/access-log-of-all", benchPolicies, post, created, logAll},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := c.policies
			if dir == "" {
				dir = b.TempDir()
			}
			backend := strings.TrimPrefix(h1test.Replying(b, c.answer), "http://")
			g := gatewayFor(b, dir, backend, nil)
			if c.with != nil {
				c.with(b, g)
			}
			address := startGateway(b, g)
			nc, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			out, in := []byte(c.request), make([]byte, len(c.answer))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(out); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(nc, in); err != nil {
					b.Fatal(err)
				}
				if in[9] != '2' {
					b.Fatalf("answered %s", in)
				}
			}
		})
	}
}

func logRefusals(t testing.TB, g *Gateway) {
	openAccessLog(t, g, telemetry.AccessOptions{Refused: true})
}

func logAll(t testing.TB, g *Gateway) {
	openAccessLog(t, g, telemetry.AccessOptions{Refused: true, OneIn: 1})
}

func openAccessLog(t testing.TB, g *Gateway, o telemetry.AccessOptions) {
	log, err := telemetry.OpenLog(io.Discard, telemetry.LogOptions{Access: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	g.observers.access = log.Access
}

func traceNone(t testing.TB, g *Gateway) {
	tracer, err := tracing.New(context.Background(),
		tracing.Options{Exporter: tracetest.NewInMemoryExporter(), Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Shutdown(context.Background()) })
	g.observers.tracer = tracer
}

// BenchmarkValidatedPatch is a patch of a plain API's object whose result is validated: a GET and a PATCH of the
// backend.
func BenchmarkValidatedPatch(b *testing.B) {
	object, err := os.ReadFile(benchObject)
	if err != nil {
		b.Fatal(err)
	}
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: %d\r\n\r\n%s", len(object), object)
	backend := strings.TrimPrefix(h1test.Replying(b, answer), "http://")
	address := startGateway(b, gatewayFor(b, "../bench/validated", backend, nil))
	nc, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	const body = `{"spec":{"replicas":4}}`
	out, in := fmt.Appendf(nil, "PATCH /apis/bench.example.com/v1/namespaces/team-a/workloads/w1 HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), make([]byte, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(out); err != nil {
			b.Fatal(err)
		}
		n := 0
		for !bytes.HasSuffix(in[:n], object) {
			more, err := nc.Read(in[n:])
			if n += more; err != nil {
				b.Fatalf("%v after %s", err, in[:n])
			}
		}
		if in[9] != '2' {
			b.Fatalf("answered %s", in[:n])
		}
	}
}
