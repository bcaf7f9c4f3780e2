package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
)

// A backend of HTTP/2 gets what one of HTTP/1.1 gets, and its clients get the same answers. A connection carries all of
// it but upgrades.
func TestHTTP2Backend(t *testing.T) {
	var conns []string
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		if r.URL.Path == "/live" {
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Errorf("%s: %v", r.Proto, err)
				return
			}
			defer func() { _ = nc.Close() }()
			_, _ = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			line, _ := rw.ReadString('\n')
			_, _ = io.WriteString(nc, line)
			return
		}
		conns = append(conns, r.Proto+" "+r.RemoteAddr)
		body, err := io.ReadAll(r.Body)
		w.Header().Set("X-Got", fmt.Sprintf("%s %s %s %s %d bytes %v", r.Method, r.Host, r.RequestURI,
			r.Header.Get("X-A"), len(body), err))
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(bytes.Repeat([]byte("0123456789abcdef"), 50_000))
		case "/parts":
			for range 3 {
				_, _ = io.WriteString(w, "part\n")
				w.(http.Flusher).Flush()
			}
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"no"}`)
		}
	}))
	behind.EnableHTTP2 = true
	behind.StartTLS()
	defer behind.Close()
	answers := func(p config.HTTPProtocol) (all string) {
		conns = nil
		c, err := config.Load("", config.Flags{Upstream: behind.URL, Dialect: "Plain"})
		if err != nil {
			t.Fatal(err)
		}
		u := &c.Upstreams[0]
		u.Protocol, u.Upgrades, u.TLS = p, []string{"/live"}, &config.UpstreamTLS{InsecureSkipTLSVerify: true}
		front := serveGateway(t, newTestGateway(t, c, noPolicies), nil)
		for _, one := range []struct{ method, path, body string }{
			{"GET", "/small", ""},
			{"HEAD", "/large", ""},
			{"GET", "/large", ""},
			{"GET", "/parts?a=b", ""},
			{"PUT", "/missing", "x"},
			{"PUT", "/file", strings.Repeat("x", 2_000_000)},
		} {
			// chunked
			r, err := http.NewRequest(one.method, "http://"+front+one.path, io.MultiReader(strings.NewReader(one.body)))
			if one.body == "" {
				r.Body = nil
			}
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "a"
			r.Header.Set("X-A", "b")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			all += fmt.Sprintf("%s: %d %q\n%.40s %d %v\n", one.path, resp.StatusCode, resp.Header["X-Got"], body,
				len(body), err)
		}
		return all + upgraded(t, front)
	}
	first := answers(config.HTTP1Protocol)
	if second := answers(config.AutoProtocol); second != first {
		t.Errorf("by HTTP/2:\n%s\nby HTTP/1.1:\n%s", second, first)
	}
	for _, one := range conns {
		if one != conns[0] || !strings.HasPrefix(one, "HTTP/2.0 ") {
			t.Errorf("the requests came by %q", conns)
			break
		}
	}
}

// What is said of trailers reaches the other side if the trailers do, which takes HTTP/2 on both.
func TestTrailersAreAnnounced(t *testing.T) {
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		announced := fmt.Sprint(r.Trailer)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Add("Trailer", "X-Got")
		w.Header().Add("Trailer", "X-Other")
		_, _ = io.WriteString(w, announced)
		w.(http.Flusher).Flush()
		w.Header().Set("X-Got", r.Trailer.Get("X-Sum"))
		w.Header().Set("X-Other", "b")
	}))
	behind.EnableHTTP2 = true
	behind.StartTLS()
	defer behind.Close()
	for _, c := range []struct {
		client               bool // by HTTP/2
		backend              config.HTTPProtocol
		announced, got, want string
	}{
		{true, config.HTTP2Protocol, "map[X-Sum:[]]", "map[X-Got:[] X-Other:[]]", "map[X-Got:[a] X-Other:[b]]"},
		{false, config.HTTP2Protocol, "map[]", "map[]", "map[]"},
		{true, config.HTTP1Protocol, "map[]", "map[]", "map[]"},
	} {
		settings, err := config.Load("", config.Flags{Upstream: behind.URL, Dialect: "Plain"})
		if err != nil {
			t.Fatal(err)
		}
		u := &settings.Upstreams[0]
		u.Protocol, u.TLS = c.backend, &config.UpstreamTLS{InsecureSkipTLSVerify: true}
		front := serveGateway(t, newTestGateway(t, settings, noPolicies), nil)
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(!c.client)
		transport.Protocols.SetUnencryptedHTTP2(c.client)
		defer transport.CloseIdleConnections()
		r, err := http.NewRequest(http.MethodPut, "http://"+front+"/", io.MultiReader(strings.NewReader("body")))
		if err != nil {
			t.Fatal(err)
		}
		r.Trailer = http.Header{"X-Sum": {"a"}}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(answer.Trailer)
		body, err := io.ReadAll(answer.Body)
		if want := fmt.Sprint(answer.Trailer); err != nil || string(body) != c.announced || got != c.got ||
			want != c.want {
			t.Errorf("HTTP/2 %v to %s: %v, the backend hears of %s, the client of %s and gets %s", c.client, c.backend,
				err, body, got, want)
		}
		_ = answer.Body.Close()
	}
}

// upgraded goes on in another protocol, and returns what comes back.
func upgraded(t *testing.T, front string) string {
	t.Helper()
	nc, err := net.Dial("tcp", front)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	_, _ = io.WriteString(nc, "GET /live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	br := bufio.NewReader(nc)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(nc, "hello\n")
	rest, err := io.ReadAll(br)
	return fmt.Sprintf("/live: %d %q %v\n", resp.StatusCode, rest, err)
}
