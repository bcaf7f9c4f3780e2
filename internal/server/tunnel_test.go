package server

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
)

// TestTunnelIdle closes tunnels that are silent for too long both ways, but none that are silent
// one way alone.
func TestTunnelIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const agreed = "HTTP/1.1 101 Switching Protocols\r\n\r\n"
		client, ours := net.Pipe()
		near, far := net.Pipe()
		s := New(Options{UpgradeIdleTimeout: time.Minute}, func(r *Request) {
			r.SendTunnel([]byte(agreed), nil, near, func() { _ = near.Close() })
		})
		go s.newConn(ours, listeners.Any(nil).Socket("")).serve()
		go func() {
			for range 10 { // in all longer than the client may be silent if the backend is too
				time.Sleep(30 * time.Second)
				h1test.Send(t, far, ".")
			}
			_, _ = io.Copy(io.Discard, far)
		}()
		h1test.Send(t, client, h1test.GetHead+"\r\n")
		start := time.Now()
		if all, err := io.ReadAll(client); string(all) != agreed+".........." || err != nil {
			t.Errorf("got %q, %v", all, err)
		}
		if took := time.Since(start); took != 10*30*time.Second+time.Minute {
			t.Errorf("the tunnel ended after %v", took)
		}
	})
}
