package upstream

import (
	"bufio"
	"io"
	"net"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
)

// newEcho is a backend that answers each head with okReply, at the least cost.
func newEcho(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				br := bufio.NewReader(nc)
				for {
					line, err := br.ReadSlice('\n')
					if err != nil {
						_ = nc.Close()
						return
					}
					if len(line) == len("\r\n") {
						_, _ = io.WriteString(nc, okReply)
					}
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

// BenchmarkDo is an exchange over a loopback socket with one endpoint and with several.
func BenchmarkDo(b *testing.B) {
	one := []string{newEcho(b)}
	for _, c := range []struct {
		name      string
		endpoints []string
	}{{"one endpoint", one}, {"four endpoints", []string{one[0], newEcho(b), newEcho(b), newEcho(b)}}} {
		b.Run(c.name, func(b *testing.B) {
			client, err := New(Config{Endpoints: c.endpoints})
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			req := request("GET", "/apis/apps/v1/namespaces/team-a/deployments/payments", "")
			var resp message.Response
			b.ReportAllocs()
			for b.Loop() {
				if err := client.Do(req, &resp); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
