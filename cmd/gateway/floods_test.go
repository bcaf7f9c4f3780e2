package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// floodedMemory is what the collector may use of a gateway that is flooded, and mostResident what the process takes
// then at most, the program's own pages included.
const (
	floodedMemory = "256MiB"
	mostResident  = 300 << 20
)

// TestFloods: clients that have requests worked on in vain, or do not read their answers, do not make the gateway take
// more memory than it has. Probes are answered meanwhile, and a client from another address loses nothing.
func TestFloods(t *testing.T) {
	if testutil.Race {
		t.Skip("the race detector takes more memory")
	}
	large := strings.Repeat("0123456789abcdef", 64<<10)
	var asked atomic.Int64
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = io.WriteString(w, large)
		case "/flooded":
			asked.Add(1)
			_, _ = io.WriteString(w, "{}")
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	t.Cleanup(backend.Close)
	for _, test := range []struct {
		name  string
		flood func(ctx context.Context, f *h2test.Flood)
	}{
		{"100 connections", func(ctx context.Context, f *h2test.Flood) { f.Reset(ctx, testutil.Amount(100, 20)) }},
		{"500 connections", func(ctx context.Context, f *h2test.Flood) { f.Reset(ctx, testutil.Amount(500, 50)) }},
		{"resets that come late", func(ctx context.Context, f *h2test.Flood) {
			f.Pause = 20 * time.Millisecond
			f.Reset(ctx, testutil.Amount(500, 50))
		}},
		{"reconnecting", func(ctx context.Context, f *h2test.Flood) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			t.Logf("%d connections", f.Reconnect(ctx, testutil.Amount(20, 4)))
		}},
		{"slow readers", func(ctx context.Context, f *h2test.Flood) {
			f.Path, f.Streams = "/large", 100
			if err := f.Hold(ctx, testutil.Amount(41, 10)); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", floodedMemory)
			t.Setenv("GOGC", "100")
			p := startServe(t, strings.TrimPrefix(backend.URL, "http://"))
			asked.Store(0)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			watched := watchFlooded(t, p)
			f := &h2test.Flood{Address: p.listen, From: "127.0.0.2", Path: "/flooded", Streams: 128}
			before := resident(p.Process.Pid)
			test.flood(ctx, f)
			cancel()
			time.Sleep(time.Second)
			most, slowest, served := watched()
			t.Logf("from %d to at most %d MiB; /livez took %v at most; %d requests of the other client were served, and %d of the flood reached the backend",
				before>>20, most>>20, slowest, served, asked.Load())
			if most > mostResident {
				t.Errorf("the gateway takes %d MiB, more than %d", most>>20, mostResident>>20)
			}
			if served == 0 {
				t.Error("no request of the other client was served")
			}
		})
	}
}

// watchFlooded looks at the memory of a gateway, asks whether it is alive, and sends requests from an address that
// floods nothing, until the function is called.
func watchFlooded(t *testing.T, p *process) (stop func() (most int64, slowest time.Duration, served int64)) {
	ctx, cancel := context.WithCancel(t.Context())
	var most int64
	var slowest time.Duration
	var served int64
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			most = max(most, resident(p.Process.Pid))
			time.Sleep(5 * time.Millisecond)
		}
	})
	all.Go(func() {
		// a probe that gives up kills the process
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for ctx.Err() == nil {
			begin := time.Now()
			r, err := client.Get("http://" + p.admin + "/livez")
			slowest = max(slowest, time.Since(begin))
			if err != nil {
				t.Errorf("/livez: %v", err)
				return
			}
			_ = r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Errorf("/livez: %d", r.StatusCode)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	all.Go(func() {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
		client := &http.Client{Timeout: testutil.Patience,
			Transport: &http.Transport{Protocols: protocols, DialContext: d.DialContext}}
		defer client.CloseIdleConnections()
		for ctx.Err() == nil {
			if err := healthyRequest(client, p.listen); err != nil {
				t.Errorf("the other client: %v", err)
				return
			}
			served++
			time.Sleep(2 * time.Millisecond)
		}
	})
	return func() (int64, time.Duration, int64) {
		cancel()
		all.Wait()
		return most, slowest, served
	}
}

func healthyRequest(client *http.Client, address string) error {
	r, err := client.Get("http://" + address + "/healthy")
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err == nil && (r.StatusCode != http.StatusOK || string(body) != "{}") {
		err = fmt.Errorf("answered %d %q", r.StatusCode, body)
	}
	return err
}

// resident returns how much memory a process takes, its program included; 0 if the system does not say.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
