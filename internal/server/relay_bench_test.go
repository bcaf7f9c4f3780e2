package server

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// BenchmarkRelay is a request from client to backend and back, without any
// meaning read into it; the allocations are the data plane's.
func BenchmarkRelay(b *testing.B) {
	answer := func(n int) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: " + strconv.Itoa(n) + "\r\n\r\n" + strings.Repeat("x", n)
	}
	rest := "User-Agent: kubectl/v1.34.0 (linux/amd64) kubernetes/abcdef0\r\nAccept: application/json\r\nAuthorization: Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IkFCQ0RFRiJ9\r\n"
	for _, c := range []struct {
		name, request string
		answer        int
	}{
		{"GET/1300", h1test.GetHead + rest + "\r\n", 1300},
		{"GET/100000", h1test.GetHead + rest + "\r\n", 100_000},
		{"POST/1300", h1test.PostHead + rest + "Content-Length: 1300\r\n\r\n" + strings.Repeat("x", 1300), 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRelay(b, upstream.Config{Endpoints: []string{h1test.Replying(b, answer(c.answer))}})
			_, addr := r.start(b, Options{})
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			out, in := []byte(c.request), make([]byte, len(answer(c.answer)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(out); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(nc, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
