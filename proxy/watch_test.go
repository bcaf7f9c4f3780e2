package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// watches opens watches through a gateway, one after the other: each has got an event when the next one is opened.
func watches(t testing.TB, target string, words []string, n int) (g *Gateway, clients, backends []net.Conn) {
	t.Helper()
	ln := listenBackend(t)
	t.Cleanup(func() { _ = ln.Close() })
	g = gatewayFor(t, t.TempDir(), ln.Addr().String(), words)
	address := startGateway(t, g)
	const event = `{"type":"BOOKMARK","object":{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1"}}}`
	scratch := bufio.NewReader(nil)
	for range n {
		c, _ := dial(t, address)
		if _, err := io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: gateway\r\nAccept: application/json\r\nUser-Agent: kubectl/v1.37.2\r\nAuthorization: Bearer abc\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		backend, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = backend.Close() })
		scratch.Reset(backend)
		if _, err := readHead(scratch); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(backend, "HTTP/1.1 200 OK\r\nAudit-Id: 7fb4b4c8-9a3a-4b0c-8c39-f0e7d0b1c9a6\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(event), event); err != nil {
			t.Fatal(err)
		}
		scratch.Reset(c)
		if _, err := readHead(scratch); err != nil {
			t.Fatal(err)
		}
		if _, err := scratch.Discard(len("6f\r\n") + len(event) + len("\r\n")); err != nil {
			t.Fatal(err)
		}
		clients, backends = append(clients, c), append(backends, backend)
	}
	return g, clients, backends
}

// TestLogFollowed lets each write of a log that is followed reach the client at once, and ends it when the client goes.
func TestLogFollowed(t *testing.T) {
	_, clients, backends := watches(t, "/api/v1/namespaces/team-a/pods/web/log?follow=true", []string{"kubernetes"}, 1)
	client, backend := bufio.NewReader(clients[0]), backends[0]
	for _, line := range []string{"started\n", "a line ", "in two parts\n"} {
		send(t, backend, fmt.Sprintf("%x\r\n%s\r\n", len(line), line))
		expect(t, client, fmt.Sprintf("%x\r\n%s\r\n", len(line), line))
	}
	_ = clients[0].Close()
	if n, err := backend.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the backend read %d bytes, %v", n, err)
	}
}

// TestClientLeavesBehindStream ends a watch whose client has sent its next request already when it goes.
func TestClientLeavesBehindStream(t *testing.T) {
	g, clients, backends := watches(t, "/apis/example.com/v1/widgets?watch=true", []string{"kubernetes"}, 1)
	send(t, clients[0], "GET /next HTTP/1.1\r\nHost: gateway\r\n\r\n")
	_ = clients[0].Close()
	if n, err := backends[0].Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the backend read %d bytes, %v", n, err)
	}
	testutil.Eventually(t, "the connections to be given up", func() bool {
		open, _ := g.routes.backends[0].client.Conns()
		return open == 0 && g.server.Open() == 0
	})
}

// TestWatchMemory holds what an idle watch takes: heap and stacks, and what the test's own two ends take of both.
func TestWatchMemory(t *testing.T) {
	const n = 400
	most := int64(18 << 10)
	if testutil.Race {
		most *= 2
	}
	for name, test := range map[string]struct {
		target string
		words  []string
	}{
		"passed":    {"/apis/example.com/v1/namespaces/team-a/widgets?watch=true", []string{"kubernetes"}},
		"completed": {"/apis/example.com/v1/namespaces/team-a/widgets?watch=true", []string{"policies=widgets"}},
		"log":       {"/api/v1/namespaces/team-a/pods/web/log?follow=true", []string{"kubernetes"}},
	} {
		t.Run(name, func(t *testing.T) {
			watches(t, test.target, test.words, 1) // what is made once
			before := heapAndStacks()
			g, clients, backends := watches(t, test.target, test.words, n)
			testutil.Eventually(t, "the last buffers to be given back", func() bool { return g.server.Open() == n })
			if each := (heapAndStacks() - before) / n; each > most {
				t.Errorf("a stream takes %d bytes, more than %d", each, most)
			} else {
				t.Logf("a stream takes %d bytes", each)
			}
			runtime.KeepAlive(clients)
			runtime.KeepAlive(backends)
		})
	}
}

// heapAndStacks returns the size of the heap and of the stacks of all goroutines.
func heapAndStacks() int64 {
	var m runtime.MemStats
	time.Sleep(50 * time.Millisecond)
	for range 3 { // pools release their items at the second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
