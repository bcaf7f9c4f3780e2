package proxy

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// The request and policies of `make bench`: a status to strip, three defaults to set, a schema, five rules to hold.
const benchPolicies, benchObject = "../bench/policies", "../bench/workload.json"

// BenchmarkGateway is a whole request through the gateway over loopback sockets; its allocations are those of the way.
func BenchmarkGateway(b *testing.B) {
	object, err := os.ReadFile(benchObject)
	if err != nil {
		b.Fatal(err)
	}
	const created = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
	ok := strings.Replace(created, "201 Created", "200 OK", 1)
	path := "/apis/bench.example.com/v1/namespaces/team-a/workloads"
	post := string(wireForm([]byte("POST " + path + " HTTP/1.1\nHost: gw\nUser-Agent: bench\nContent-Type: application/json\nContent-Length: *\n\n" + string(object))))
	get := "GET " + path + "/w1 HTTP/1.1\r\nHost: gw\r\nUser-Agent: bench\r\nAccept: application/json\r\n\r\n"
	for _, c := range []struct{ name, policies, request, answer string }{
		{"GET", "", get, ok},
		{"POST/no-policies", "", post, created},
		{"POST/full-admission", benchPolicies, post, created},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := c.policies
			if dir == "" {
				dir = b.TempDir()
			}
			backend := strings.TrimPrefix(replying(b, c.answer), "http://")
			address := startGateway(b, gatewayFor(b, dir, backend, nil))
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
