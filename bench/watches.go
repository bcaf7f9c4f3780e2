package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The goals for watches that nothing happens on, and for what does happen: at most so many KB of resident memory for
// each idle watch, and so many milliseconds from the backend's write to the client's read, both ways over loopback
// included.
const (
	maxWatchKB           = 12
	maxEventMilliseconds = 1
	// maxHTTP2Part is what a watch by HTTP/2 on both sides takes at most of the memory of one by HTTP/1.1.
	maxHTTP2Part = 0.5
)

// watching is open watches through a gateway, with both ends of each.
type watching interface {
	// open opens n more.
	open(n int) error
	// size returns how many are open.
	size() int
	// event and leave return the milliseconds that an event takes to the client of a watch, and the end of a client to
	// the backend.
	event(i int) (milliseconds float64, err error)
	leave(i int) (milliseconds float64, err error)
	close()
}

// A WatchResult is the result of watches through one gateway.
type WatchResult struct {
	Title    string  `json:"title"`
	Streams  int     `json:"streams"`
	EachKB   float64 `json:"eachKB"`   // resident memory that each idle watch added
	EventP50 float64 `json:"eventP50"` // milliseconds
	EventP99 float64 `json:"eventP99"`
	LeaveP50 float64 `json:"leaveP50"` // from the client's close to the end of the backend's stream
}

// runWatches measures idle watches, alone: nothing else is to run on the machine's CPUs meanwhile.
func runWatches(ctx context.Context, o options) error {
	server, load, err := allowedCPUs()
	if err != nil {
		return err
	}
	o.serverCPUs, o.loadCPUs = cmp.Or(o.serverCPUs, server), cmp.Or(o.loadCPUs, load)
	dir, err := os.MkdirTemp("", "gateway-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	m, err := newMachine(ctx, o, dir, []Target{{OfGateway: true}})
	if err != nil {
		return err
	}
	p, reached := printer{to: os.Stdout}, true
	p.printf("| watches | idle streams | resident KB each | event p50 ms | p99 ms | client leaves, p50 ms |\n|---|--:|--:|--:|--:|--:|\n")
	var each []float64 // of the rows
	for _, row := range []struct {
		title   string
		isHTTP2 bool
		flags   []string
	}{
		{"passed as they come", false, []string{"--dialect", "Kubernetes"}},
		{"passed as they come, by HTTP/2 on both sides", true, []string{"--dialect", "Kubernetes"}},
		{"completed: defaults of a plain backend's objects", false,
			[]string{"--dialect", "Plain", "--policies", filepath.Join(m.Root, "bench", "policies")}},
	} {
		r, err := m.watches(ctx, row.title, o.watches, row.isHTTP2, row.flags)
		if err != nil {
			return err
		}
		each = append(each, r.EachKB)
		p.printf("| %s | %d | %.1f | %.3f | %.3f | %.3f |\n", r.Title, r.Streams, r.EachKB, r.EventP50, r.EventP99,
			r.LeaveP50)
		reached = reached && r.EachKB <= maxWatchKB && r.EventP50 <= maxEventMilliseconds
	}
	part := each[1] / each[0]
	p.printf("\n- memory of a watch by HTTP/2: %.2f × that of one by HTTP/1.1, goal at most %.2f\n", part, maxHTTP2Part)
	for _, isSecure := range []bool{false, true} {
		kb, err := m.idle(ctx, o.watches, isSecure)
		if err != nil {
			return err
		}
		by, most := "HTTP/1.1", maxIdleKB
		if isSecure {
			by, most = "TLS", maxIdleSecureKB
		}
		p.printf("- idle connections by %s: %.1f KB each, goal at most %d\n", by, kb, most)
		reached = reached && kb <= float64(most)
	}
	if reached = reached && part <= maxHTTP2Part; p.err == nil && o.mustReach && !reached {
		return fmt.Errorf("a goal is missed: at most %d KB for each watch, %.1f × as much by HTTP/2, %d ms for half of the events, and %d and %d KB for idle connections",
			maxWatchKB, maxHTTP2Part, maxEventMilliseconds, maxIdleKB, maxIdleSecureKB)
	}
	return p.err
}

// watches starts a gateway and opens watches through it, whose both ends this program has.
func (m *Machine) watches(ctx context.Context, title string, n int, isHTTP2 bool, flags []string) (WatchResult, error) {
	result := WatchResult{Title: title, Streams: n}
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return result, err
	}
	defer func() { _ = backend.Close() }()
	listen, err := freeAddress()
	if err != nil {
		return result, err
	}
	admin, err := freeAddress()
	if err != nil {
		return result, err
	}
	command := []string{m.Gateway, "serve", "--listen", listen, "--admin", admin}
	if isHTTP2 {
		config, err := m.configFile("watches", map[string]any{
			"upstreams": []any{map[string]any{"name": "backend",
				"endpoints": []string{"http://" + backend.Addr().String()}, "protocol": "HTTP2"}},
		})
		if err != nil {
			return result, err
		}
		command = append(command, "--config", config)
	} else {
		command = append(command, "--upstream", "http://"+backend.Addr().String())
	}
	gateway, err := startProcess(m.Dir, "watches", m.serverCPUs, append(command, flags...)...)
	if err != nil {
		return result, err
	}
	defer gateway.stop()
	if _, err := gateway.waitReady(ctx, "http://"+admin+"/readyz"); err != nil {
		return result, err
	}
	var w watching = &watchers{gateway: listen, backend: backend}
	if isHTTP2 {
		w = newHTTP2Watchers(listen, backend)
	}
	defer w.close()
	if err := w.open(20); err != nil { // what is made once
		return result, errors.Join(err, errors.New(gateway.output()))
	}
	before, err := gateway.residentLater()
	if err != nil {
		return result, err
	}
	if err := w.open(n); err != nil {
		return result, errors.Join(err, errors.New(gateway.output()))
	}
	after, err := gateway.residentLater()
	if err != nil {
		return result, err
	}
	result.EachKB = (after - before) * 1024 / float64(n)
	events := make([]float64, 0, 2000)
	for i := range 2000 {
		took, err := w.event((i * 7919) % w.size())
		if err != nil {
			return result, err
		}
		events = append(events, took)
	}
	leaves := make([]float64, 0, 200)
	for i := range min(200, n) {
		took, err := w.leave(i)
		if err != nil {
			return result, err
		}
		leaves = append(leaves, took)
	}
	slices.Sort(events)
	result.EventP50, result.EventP99, result.LeaveP50 = middle(events), events[len(events)*99/100], middle(leaves)
	return result, nil
}

// watchers are open watches by HTTP/1.1, with the ends of clients and backend of each. They implement watching.
type watchers struct {
	gateway string
	backend net.Listener

	clients, backends []net.Conn
	readers           []*bufio.Reader // of the clients
}

// open opens watches one after the other and lets each have an event.
func (w *watchers) open(n int) error {
	for range n {
		c, err := net.Dial("tcp", w.gateway)
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
		_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
		if _, err := io.WriteString(c, "GET "+collection+"?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nHost: gateway\r\nAccept: application/json\r\nUser-Agent: kubectl/v1.37.2\r\n\r\n"); err != nil {
			return err
		}
		b, err := w.accept()
		if err != nil {
			return err
		}
		w.backends = append(w.backends, b)
		if _, err := io.WriteString(b, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
			return err
		}
		r := bufio.NewReaderSize(c, 1<<10)
		w.readers = append(w.readers, r)
		if _, err := w.event(len(w.clients) - 1); err != nil {
			return err
		}
	}
	return nil
}

// size returns how many are open.
func (w *watchers) size() int { return len(w.clients) }

// accept returns the backend's end of the next watch. What the gateway asks on its own account is answered that there
// is none.
func (w *watchers) accept() (net.Conn, error) {
	for {
		b, err := w.backend.Accept()
		if err != nil {
			return nil, err
		}
		line, err := readHead(bufio.NewReaderSize(b, 1<<10))
		if err == nil && strings.Contains(line, "watch=true") {
			return b, nil
		}
		if err == nil {
			_, err = io.WriteString(b, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
		if _ = b.Close(); err != nil {
			return nil, err
		}
	}
}

// readHead reads up to the empty line, and returns the first one.
func readHead(r *bufio.Reader) (first string, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return first, err
		}
		if first == "" {
			first = line
		}
	}
}

// event sends an event on a watch and returns the milliseconds until the client has its last byte.
func (w *watchers) event(i int) (float64, error) {
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(watchEvent), watchEvent)
	started := time.Now()
	if _, err := io.WriteString(w.backends[i], chunk); err != nil {
		return 0, err
	}
	for {
		line, err := w.readers[i].ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("an event did not arrive: %w", err)
		}
		if strings.HasSuffix(line, "}}\r\n") || strings.HasSuffix(line, "}}}\r\n") {
			return float64(time.Since(started).Microseconds()) / 1000, nil
		}
	}
}

// leave closes a client's end and returns the milliseconds until the backend's stream has ended.
func (w *watchers) leave(i int) (float64, error) {
	started := time.Now()
	_ = w.clients[i].Close()
	_ = w.backends[i].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := w.backends[i].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("the backend's stream goes on though the client has gone: %w", err)
	}
	return float64(time.Since(started).Microseconds()) / 1000, nil
}

func (w *watchers) close() {
	for _, c := range append(w.clients, w.backends...) {
		_ = c.Close()
	}
}
