package proxy

import (
	"io"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// BenchmarkLimitedGET is a GET that is passed through, counted by two limits over time and one of requests at a time:
// beside BenchmarkGateway/GET it shows what limits cost, and that they take no memory.
func BenchmarkLimitedGET(b *testing.B) {
	const (
		ok     = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
		state  = "RateLimit-Policy: \"a\";q=1000000000;w=1, \"b\";q=1000000000;w=1\r\nRateLimit: \"a\";r=999999999;t=1, \"b\";r=999999999;t=1\r\n"
		head   = "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: "
		limits = head + "a}\nspec: {key: User, requests: 1000000000, periodSeconds: 1}\n---\n" +
			head + "b}\nspec: {key: Namespace, requests: 1000000000, periodSeconds: 1}\n---\n" +
			head + "c}\nspec: {key: ClientAddress, maxInFlight: 10, maxInFlightTotal: 100, queueLength: 10}\n"
	)
	dir := policiestest.Write(b, limits)
	address := startGateway(b, gatewayFor(b, dir, strings.TrimPrefix(h1test.Replying(b, ok), "http://"), nil))
	nc, _ := dial(b, address)
	out := []byte("GET /apis/bench.example.com/v1/namespaces/team-a/workloads/w1 HTTP/1.1\r\nHost: gw\r\nUser-Agent: bench\r\nAccept: application/json\r\n\r\n")
	in := make([]byte, len(ok)+len(state))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(nc, in); err != nil {
			b.Fatal(err)
		}
	}
	if want := state + "\r\n{}"; !strings.HasSuffix(string(in), want) {
		b.Fatalf("answered %s", in)
	}
}
