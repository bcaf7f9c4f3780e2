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

// The goals for watches that nothing happens on, and for what does happen: at most so many KB of resident memory for each
// idle watch, and so many milliseconds from the backend's write to the client's read, both ways over loopback included.
const (
	maxWatchKB           = 30
	maxEventMilliseconds = 1
)

// watchEvent is an event of a watch, an object of the benchmark's kind.
const watchEvent = `{"type":"MODIFIED","object":{"apiVersion":"bench.example.com/v1","kind":"Workload","metadata":{"name":"checkout","namespace":"team-a","resourceVersion":"1001"},` +
	`"spec":{"revisionHistoryLimit":10,"strategy":"RollingUpdate","replicas":3}}}`

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
	for _, row := range []struct {
		title string
		flags []string
	}{
		{"passed as they come", []string{"--dialect", "Kubernetes"}},
		{"completed: defaults of a plain backend's objects", []string{"--dialect", "Plain", "--policies", filepath.Join(m.Root, "bench", "policies")}},
	} {
		r, err := m.watches(ctx, row.title, o.watches, row.flags)
		if err != nil {
			return err
		}
		p.printf("| %s | %d | %.1f | %.3f | %.3f | %.3f |\n", r.Title, r.Streams, r.EachKB, r.EventP50, r.EventP99, r.LeaveP50)
		reached = reached && r.EachKB <= maxWatchKB && r.EventP50 <= maxEventMilliseconds
	}
	if p.err == nil && o.mustReach && !reached {
		return fmt.Errorf("a goal is missed: at most %d KB for each watch, and %d ms for half of the events", maxWatchKB, maxEventMilliseconds)
	}
	return p.err
}

// watches starts a gateway and opens watches through it, whose both ends this program has.
func (m *Machine) watches(ctx context.Context, title string, n int, flags []string) (WatchResult, error) {
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
	gateway, err := startProcess(m.Dir, "watches", m.serverCPUs,
		append([]string{m.Gateway, "serve", "--listen", listen, "--upstream", "http://" + backend.Addr().String(), "--admin", admin}, flags...)...)
	if err != nil {
		return result, err
	}
	defer gateway.stop()
	if _, err := gateway.waitReady(ctx, "http://"+admin+"/readyz"); err != nil {
		return result, err
	}
	const settle = 3 * time.Second
	w := &watchers{gateway: listen, backend: backend}
	defer w.close()
	if err := w.open(20); err != nil { // what is made once
		return result, errors.Join(err, errors.New(gateway.output()))
	}
	time.Sleep(settle)
	before, err := gateway.resident()
	if err != nil {
		return result, err
	}
	if err := w.open(n); err != nil {
		return result, errors.Join(err, errors.New(gateway.output()))
	}
	time.Sleep(settle)
	after, err := gateway.resident()
	if err != nil {
		return result, err
	}
	result.EachKB = (after - before) * 1024 / float64(n)
	events := make([]float64, 0, 2000)
	for i := range 2000 {
		took, err := w.event((i * 7919) % len(w.clients))
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

// watchers are open watches, with the ends of clients and backend of each.
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
		b, err := w.backend.Accept()
		if err != nil {
			return err
		}
		w.backends = append(w.backends, b)
		if err := skipHead(bufio.NewReaderSize(b, 1<<10)); err != nil {
			return err
		}
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

// skipHead reads up to the empty line.
func skipHead(r *bufio.Reader) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return err
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
