package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestUpgradeEnds ends upgraded connections in every way, and looks for what is left: connections, goroutines, the
// gauge.
func TestUpgradeEnds(t *testing.T) {
	accepted := make(chan net.Conn, 1)
	g, address := upgradeGateway(t, func(c *config.Configuration) { c.Upstreams[0].MaxConnections = 4 }, "",
		func(c net.Conn) {
			r := bufio.NewReader(c)
			if _, err := readHead(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, agree("websocket"))
			done := make(chan struct{})
			accepted <- &ending{c.(*net.TCPConn), done}
			<-done
		})
	isOver := func() bool {
		open, _ := g.routes.backends[0].client.Conns()
		return open == 0 && g.server.Open() == 0
	}
	for name, end := range map[string]func(client, backend *net.TCPConn){
		"the client closes":  func(client, _ *net.TCPConn) { _ = client.Close() },
		"the client resets":  func(client, _ *net.TCPConn) { _ = client.SetLinger(0); _ = client.Close() },
		"the backend closes": func(_, backend *net.TCPConn) { _ = backend.Close() },
		"the backend resets": func(_, backend *net.TCPConn) { _ = backend.SetLinger(0); _ = backend.Close() },
		"both finish":        func(client, backend *net.TCPConn) { _ = client.CloseWrite(); _ = backend.CloseWrite() },
		"the client goes amid bytes": func(client, backend *net.TCPConn) {
			_,
				_ = backend.Write(make([]byte, 64<<10))
			_ = client.Close()
		},
		"the backend goes amid bytes": func(client, backend *net.TCPConn) {
			_,
				_ = client.Write(make([]byte, 64<<10))
			_ = backend.Close()
		},
		"the client finishes, then leaves": func(client, backend *net.TCPConn) {
			_ = client.CloseWrite()
			_, _ = backend.Read(make([]byte, 1))
			_ = client.Close()
			for {
				if _, err := backend.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, r := dialTCP(t, address)
			if _, err := io.WriteString(c, askUpgrade("GET", execPath, "websocket")); err != nil {
				t.Fatal(err)
			}
			if _, err := readHead(r); err != nil {
				t.Fatal(err)
			}
			backend := (<-accepted).(*ending)
			end(c, backend.TCPConn)
			if strings.HasSuffix(name, "finishes, then leaves") || strings.HasPrefix(name, "the backend") ||
				name == "both finish" {
				_, _ = io.Copy(io.Discard, r)
			} else {
				_, _ = io.Copy(io.Discard, backend)
			}
			close(backend.done)
			_ = c.Close()
			testutil.Eventually(t, "both ends to be closed", isOver)
		})
	}
	testutil.Eventually(t, "the goroutines to end", func() bool {
		stacks := make([]byte, 1<<20)
		return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("proxy.(*tunnel)"))
	})
}

// ending is a backend's end that the test has.
type ending struct {
	*net.TCPConn
	done chan struct{}
}

// TestUpgradeShutdown lets upgraded connections go on for as long as their own limit says, and ends them then.
func TestUpgradeShutdown(t *testing.T) {
	ended := make(chan struct{})
	g, address := upgradeGateway(t, nil, "", func(c net.Conn) {
		r := bufio.NewReader(c)
		_, _ = readHead(r)
		_, _ = io.WriteString(c, agree("SPDY/3.1"))
		_, _ = io.Copy(c, r)
		close(ended)
	})
	c, r := dialTCP(t, address)
	if _, err := io.WriteString(c, askUpgrade("POST", execPath, "SPDY/3.1")); err != nil {
		t.Fatal(err)
	}
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	down := make(chan error, 1)
	go func() {
		_, err := g.Drain(context.Background(), ctx)
		down <- errors.Join(err, g.server.Shutdown(context.Background()))
	}()
	testutil.Eventually(t, "the shutdown to begin", g.server.Draining)
	for range 3 {
		_, _ = io.WriteString(c, "still here;")
		expect(t, r, "still here;")
	}
	cancel()
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil && !isReset(err) {
		t.Error(err)
	}
	<-ended
}

// TestUpgradeMemory holds what an upgraded connection takes on which nothing happens, and what the test's own two ends
// take.
func TestUpgradeMemory(t *testing.T) {
	const n = 300
	most := int64(24 << 10)
	if testutil.Race {
		most *= 2
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	g := gatewayFor(t, t.TempDir(), ln.Addr().String(), []string{"kubernetes"})
	address := startGateway(t, g)
	scratch := bufio.NewReader(nil)
	var ends []net.Conn
	before := heapAndStacks()
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		send(t, c, askUpgrade("GET", execPath, "websocket", "Sec-WebSocket-Protocol: v5.channel.k8s.io",
			"Authorization: Bearer abc"))
		backend, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, c, backend)
		scratch.Reset(backend)
		if _, err := readHead(scratch); err != nil {
			t.Fatal(err)
		}
		send(t, backend, agree("websocket")+strings.Repeat("x", 4<<10))
		scratch.Reset(c)
		if _, err := readHead(scratch); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, scratch, 4<<10); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heapAndStacks() - before) / n; each > most {
		t.Errorf("a connection takes %d bytes, more than %d", each, most)
	} else {
		t.Logf("a connection takes %d bytes", each)
	}
	for _, c := range ends {
		_ = c.Close()
	}
	testutil.Eventually(t, "the connections to be given up", func() bool { return g.server.Open() == 0 })
}
