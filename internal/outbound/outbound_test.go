package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// outcome asks a URL, and says what comes of it.
func outcome(c *http.Client, method, url string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("body"))
	if err != nil {
		return err.Error()
	}
	answer, err := c.Do(r)
	if err != nil {
		return cause(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Sprintf("%d bytes, %s", len(text), cause(err))
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, text)
}

// cause is an error without the URL.
func cause(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

func trusting(s *httptest.Server) func() *tls.Config {
	known := s.Client().Transport.(*http.Transport).TLSClientConfig
	return func() *tls.Config { return known }
}

// confined is a client as a library makes it that follows every redirect.
func confined(t *http.Transport, o Options) *http.Client {
	return &http.Client{Transport: Confine(t, o),
		CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
}

func TestRedirects(t *testing.T) {
	plain := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("plain")) }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); {
		case r.URL.Path == "/plain":
			http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
		case err == nil && n > 0:
			http.Redirect(w, r, fmt.Sprintf("/%d?secret=x", n-1), http.StatusTemporaryRedirect)
		default:
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("Referer"))
		}
	}))
	defer secure.Close()
	known := trusting(secure)
	one, follows := New(Options{TLS: known}), New(Options{TLS: known, Redirects: true})
	library := confined(&http.Transport{TLSClientConfig: known()}, Options{})
	traced := New(Options{TLS: known, Redirects: true,
		Trace: func(over http.RoundTripper) http.RoundTripper { return cloning{over} }})
	for _, tt := range []struct {
		name, method, path string
		client             *http.Client
		want               string
	}{
		{"none is followed", "GET", "/1", one, `307 <a href="/0?secret=x">Temporary Redirect</a>.` + "\n\n"},
		{"five", "GET", "/5", follows, "200 GET "},
		{"six", "GET", "/6", follows, "the server redirects more than 5 times"},
		{"six below a span", "GET", "/6", traced, "the server redirects more than 5 times"},
		{"of a write", "POST", "/1", follows, "307 "},
		{"to plain HTTP", "GET", "/plain", follows, "the server redirects to an address without TLS"},
		{"to plain HTTP below a span", "GET", "/plain", traced, "the server redirects to an address without TLS"},
		{"of a library", "POST", "/5", library, "200 POST " + secure.URL + "/1?secret=x"},
		{"six of a library", "POST", "/6", library, "the server redirects more than 5 times"},
		{"to plain HTTP, of a library", "GET", "/plain", library, "the server redirects to an address without TLS"},
	} {
		if got := outcome(tt.client, tt.method, secure.URL+tt.path); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestTrace: spans are laid around a request once, by its client or by its context.
func TestTrace(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	var spans []string
	by := func(name string) Trace {
		return func(over http.RoundTripper) http.RoundTripper {
			return noting{over, func() { spans = append(spans, name) }}
		}
	}
	for _, tt := range []struct {
		client *http.Client
		within Trace
		want   string
	}{
		{New(Options{}), nil, ""},
		{New(Options{Trace: by("client")}), nil, "client"},
		{New(Options{}), by("request"), "request"},
		{confined(nil, Options{}), by("request"), "request"},
		{New(Options{Trace: by("client")}), by("request"), "client"},
	} {
		spans = nil
		ctx := t.Context()
		if tt.within != nil {
			ctx = WithTrace(ctx, tt.within)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := tt.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := strings.Join(spans, ","); got != tt.want {
			t.Errorf("got spans of %q, want %q", got, tt.want)
		}
	}
}

type noting struct {
	over http.RoundTripper
	note func()
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	n.note()
	return n.over.RoundTrip(r)
}

// cloning sends a copy of each request, as a span does.
type cloning struct{ over http.RoundTripper }

func (c cloning) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.over.RoundTrip(r.Clone(r.Context()))
}

func TestBounds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		_, _ = w.Write([]byte(strings.Repeat("a", n)))
	}))
	defer server.Close()
	for _, c := range []*http.Client{New(Options{MaxBytes: 4}), confined(nil, Options{MaxBytes: 4})} {
		for n, want := range map[int]string{
			0: "200 ", 4: "200 aaaa", 5: "4 bytes, the answer must have at most 4 bytes",
			1 << 20: "4 bytes, the answer must have at most 4 bytes",
		} {
			if got := outcome(c, "GET", fmt.Sprintf("%s/%d", server.URL, n)); got != want {
				t.Errorf("%d bytes: got %q, want %q", n, got, want)
			}
		}
	}
	if got := outcome(New(Options{}), "GET", fmt.Sprintf("%s/%d", server.URL, DefaultMaxBytes+1)); !strings.HasSuffix(
		got, "the answer must have at most 1048576 bytes") {
		t.Errorf("by default: got %q", got)
	}
	// The client's own timer and the deadline of its context end together; the first one words the error.
	got := outcome(New(Options{Timeout: 50 * time.Millisecond}), "GET", server.URL+"/slow")
	if !strings.Contains(got, "Client.Timeout") && !strings.Contains(got, "0 bytes, context deadline exceeded") {
		t.Errorf("a slow answer: got %q", got)
	}
	bounded := New(Options{Timeout: ByContext})
	if got := outcome(bounded, "GET", server.URL+"/1"); got != "200 a" {
		t.Errorf("with a deadline: got %q", got)
	}
	if _, err := bounded.Get(server.URL + "/1"); !errors.Is(err, errUnbounded) {
		t.Errorf("without a deadline: %v", err)
	}
	for timeout, want := range map[time.Duration]time.Duration{0: DefaultTimeout, time.Hour: time.Hour, ByContext: 0} {
		if got := New(Options{Timeout: timeout}).Timeout; got != want {
			t.Errorf("%v: got %v, want %v", timeout, got, want)
		}
	}
}

// TestTLS: a server is asked with HTTP/1.1 even if it has HTTP/2, and anew when the configuration has changed.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	}))
	var connections atomic.Int64
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	by := trusting(server)().Clone()
	c := New(Options{TLS: func() *tls.Config { return by }})
	for want := range int64(3) {
		for range 2 {
			if got := outcome(c, "GET", server.URL); got != "200 HTTP/1.1" || connections.Load() != want+1 {
				t.Errorf("got %q by %d connections, want %d", got, connections.Load(), want+1)
			}
		}
		by = by.Clone()
	}
	if got := outcome(confined(&http.Transport{TLSClientConfig: by, ForceAttemptHTTP2: true}, Options{}), "GET",
		server.URL); got != "200 HTTP/1.1" {
		t.Errorf("of a library: got %q", got)
	}
	if got := outcome(New(Options{}), "GET", server.URL); !strings.Contains(got, "certificate") {
		t.Errorf("by the system's authorities: got %q", got)
	}
	c.CloseIdleConnections()
	if outcome(c, "GET", server.URL); connections.Load() < 5 {
		t.Errorf("%d connections after all were closed", connections.Load())
	}
}

const asked = "OUTBOUND_TEST_ASKS"

// TestProxies: which servers are reached through the proxies of the environment, which a process
// reads once.
func TestProxies(t *testing.T) {
	to := "http://server.invalid/x"
	if os.Getenv(asked) != "" {
		own, err := url.Parse(os.Getenv("OWN_PROXY"))
		if err != nil {
			t.Fatal(err)
		}
		short := 5 * time.Second
		for name, c := range map[string]*http.Client{
			"default": New(Options{Timeout: short}), "direct": New(Options{Timeout: short, Direct: true}),
			"own":            New(Options{Timeout: short, Proxy: http.ProxyURL(own)}),
			"library":        confined(http.DefaultTransport.(*http.Transport).Clone(), Options{}),
			"direct library": confined(http.DefaultTransport.(*http.Transport).Clone(), Options{Direct: true}),
		} {
			answer := outcome(c, "GET", to)
			if !strings.HasPrefix(answer, "200 ") {
				answer = "none"
			}
			fmt.Printf("asked %s: %s\n", name, answer)
		}
		fmt.Printf("asked exempt: %.3s\n", outcome(New(Options{Timeout: short}), "GET", "http://none.invalid/"))
		return
	}
	proxy := func(name string) *httptest.Server {
		return httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_,
					_ = w.Write([]byte(name + " " + r.RequestURI))
			}))
	}
	environments, own := proxy("the environment's"), proxy("its own")
	defer environments.Close()
	defer own.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProxies$")
	cmd.Env = []string{asked + "=1", "HTTP_PROXY=" + environments.URL, "NO_PROXY=none.invalid", "OWN_PROXY=" + own.URL}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, want := range []string{
		"asked default: 200 the environment's " + to, "asked own: 200 its own " + to, "asked direct: none",
		"asked library: 200 the environment's " + to, "asked direct library: none",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "asked exempt: 200") {
		t.Errorf("NO_PROXY does not count:\n%s", text)
	}
}
