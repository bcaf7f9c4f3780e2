package upstream

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil/relay"
)

// serveOld serves HTTP/1.1 by net/http without TLS.
func serveOld(t testing.TB, h http.Handler) Config {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Config{Endpoints: []string{s.URL}}
}

// serveOldTLS serves HTTP/1.1 by net/http to clients that would speak HTTP/2.
func serveOldTLS(t testing.TB, h http.Handler) Config {
	t.Helper()
	c := serveTLS(t, h)
	s := httptest.NewUnstartedServer(h)
	s.StartTLS()
	t.Cleanup(s.Close)
	c.Endpoints = []string{s.URL}
	return c
}

// TestDeadWatch: a watch on a connection that carries nothing any more, though neither end closes it, ends with an
// error. One that is silent because nothing happens goes on by HTTP/2, where the backend is asked, and by HTTP/1.1
// until its time is over.
func TestDeadWatch(t *testing.T) {
	const period, grace = 600 * time.Millisecond, 400 * time.Millisecond
	for _, test := range []struct {
		name    string
		serve   func(testing.TB, http.Handler) Config
		isHTTP2 bool
	}{
		{"HTTP/1.1", serveOld, false},
		{"HTTP/1.1 by TLS", serveOldTLS, false},
		{"HTTP/2", servePlain, true},
		{"HTTP/2 by TLS", serveTLS, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			more := make(chan struct{})
			over := make(chan struct{})
			defer close(over)
			config := test.serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "begun\n")
				_ = http.NewResponseController(w).Flush()
				for {
					select {
					case <-more:
						_, _ = io.WriteString(w, "event\n")
						_ = http.NewResponseController(w).Flush()
					case <-over:
						return
					}
				}
			}))
			at, err := url.Parse(config.Endpoints[0])
			if err != nil {
				t.Fatal(err)
			}
			way := relay.New(t, at.Host)
			config.Endpoints = []string{at.Scheme + "://" + way.Address()}
			config.Timeouts.Ping, config.Timeouts.PingAnswer = period, grace
			config.Watches = &Watches{Period: period, Grace: grace}
			client := newClient(t, config)
			watch := func() (*bufio.Reader, *message.Response) {
				t.Helper()
				r, resp := request("GET", "/", ""), new(message.Response)
				r.IsWatch = true
				if err := client.Do(r, resp); err != nil || !resp.IsStream() {
					t.Fatalf("no watch: %v", err)
				}
				events := bufio.NewReader(resp.Stream())
				if line, err := events.ReadString('\n'); line != "begun\n" {
					t.Fatalf("the watch begins with %q, %v", line, err)
				}
				return events, resp
			}
			events, resp := watch()
			if want := time.Duration(0); test.isHTTP2 != (client.WatchPeriod() == want) {
				t.Errorf("watches are to last for %s", client.WatchPeriod())
			}
			if test.isHTTP2 {
				time.Sleep(3 * (period + grace)) // it would be dead by now if the backend did not answer
			}
			more <- struct{}{}
			if line, err := events.ReadString('\n'); line != "event\n" {
				t.Fatalf("a silent watch brings %q, %v", line, err)
			}
			if way.Freeze() == 0 {
				t.Fatal("no connection is frozen")
			}
			line, err := events.ReadString('\n')
			if kind := kindOf(err); line != "" || kind == "" || err == io.EOF {
				t.Errorf("a dead watch ends with %q, %v", line, err)
			}
			resp.Close()
			_, resp = watch()
			resp.Close()
			if n := way.Connections(); n != 2 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}

// TestSilentAnswer: what is no watch, or not of an API server, may be silent without bound by HTTP/1.1.
func TestSilentAnswer(t *testing.T) {
	const period = 100 * time.Millisecond
	for name, test := range map[string]struct {
		watches *Watches
		isWatch bool
	}{
		"no watch":           {&Watches{Period: period, Grace: period}, false},
		"another backend":    {nil, true},
		"a bound of its own": {&Watches{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			more := make(chan struct{})
			config := serveOld(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "begun\n")
				_ = http.NewResponseController(w).Flush()
				<-more
				_, _ = io.WriteString(w, "event\n")
			}))
			config.Watches = test.watches
			client := newClient(t, config)
			r, resp := request("GET", "/", ""), new(message.Response)
			r.IsWatch = test.isWatch
			if err := client.Do(r, resp); err != nil || !resp.IsStream() {
				t.Fatalf("no stream: %v", err)
			}
			time.AfterFunc(5*period, func() { close(more) })
			if body := bodyOf(t, resp); body != "begun\nevent\n" {
				t.Errorf("the answer is %q", body)
			}
		})
	}
}
