package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
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

// BenchmarkDoHTTP2 is an exchange over a loopback socket, alone and beside 99 others on the connection.
func BenchmarkDoHTTP2(b *testing.B) {
	block := append([]byte{0, 0, 5, 1, 4, 0, 0, 0, 0}, 0x88, 0x0f, 0x0d, 0x01, '2') // 200, with a length
	config := newFar(b, func(f *far, _ int) {
		br := bufio.NewReaderSize(f.Conn, 64<<10)
		var head [9]byte
		var out []byte
		for {
			if _, err := io.ReadFull(br, head[:]); err != nil {
				return
			}
			if _, err := br.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil {
				return
			}
			if head[3] == 1 { // a head, in one frame
				out = append(out, block...)
				copy(out[len(out)-len(block)+5:], head[5:9])
				out = append(append(append(out, 0, 0, 2, 0, 1), head[5:9]...), "ok"...)
			}
			if br.Buffered() == 0 {
				_, _ = f.Conn.Write(out)
				out = out[:0]
			}
		}
	})
	for _, parallel := range []int{1, 100} {
		b.Run(strconv.Itoa(parallel), func(b *testing.B) {
			client := newClient(b, config)
			b.SetParallelism(parallel / runtime.GOMAXPROCS(0))
			b.ReportAllocs()
			one := func(next func() bool) {
				req := request("GET", "/apis/apps/v1/namespaces/team-a/deployments/payments", "")
				var resp message.Response
				for next() {
					if err := client.Do(req, &resp); err != nil || string(resp.Body()) != "ok" {
						b.Error(err, errors.Unwrap(err))
						return
					}
				}
			}
			if parallel == 1 {
				one(b.Loop)
			} else {
				b.RunParallel(func(p *testing.PB) { one(p.Next) })
			}
		})
	}
}
