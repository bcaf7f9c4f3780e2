package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil/relay"
)

// podServer is an API server that keeps watches open, and notes what it is asked for.
type podServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // protocol and query of each watch
	over  chan struct{}
}

func newPodServer(t *testing.T, hasHTTP2, isSecure bool) *podServer {
	s := &podServer{over: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/namespaces/a/pods" {
			_, _ = io.WriteString(w, "{}")
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, fmt.Sprint(r.ProtoMajor, " ", r.URL.RawQuery))
		s.mu.Unlock()
		_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}`+"\n")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Query().Get("watch") != "" {
			select {
			case <-s.over:
			case <-r.Context().Done():
			}
		}
	}))
	s.EnableHTTP2 = hasHTTP2
	if isSecure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		close(s.over)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// gatewayBefore returns the address of a gateway before an API server.
func gatewayBefore(t *testing.T, address string, edit func(*config.UpstreamSpec)) string {
	t.Helper()
	c, err := config.Load("", config.Flags{Upstream: address, Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	u := &c.Upstreams[0]
	if strings.HasPrefix(address, "https:") {
		u.TLS = &config.UpstreamTLS{InsecureSkipTLSVerify: true}
	}
	if edit != nil {
		edit(u)
	}
	return serveGateway(t, newTestGateway(t, c, noPolicies), nil)
}

// beginWatch begins a watch, and returns it once its first event is there.
func beginWatch(t *testing.T, address, query string) (*bufio.Reader, *http.Response) {
	t.Helper()
	resp, err := http.Get("http://" + address + "/api/v1/namespaces/a/pods?" + query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	events := bufio.NewReader(resp.Body)
	if line, err := events.ReadString('\n'); err != nil || resp.StatusCode != 200 ||
		!strings.HasPrefix(line, `{"type":"BOOKMARK"`) {
		t.Fatalf("the watch begins with %d %q, %v", resp.StatusCode, line, err)
	}
	return events, resp
}

// TestWatchesEnd: on connections of HTTP/1.1 an API server is asked to end watches in time, which shows that the
// connection is alive. All else that clients ask for stays as it is, as it does on connections of HTTP/2, which show
// that by themselves.
func TestWatchesEnd(t *testing.T) {
	const soon = `timeoutSeconds=(2[5-9]|30)`
	plain := newPodServer(t, false, false)
	for name, test := range map[string]struct {
		server *podServer
		edit   func(*config.UpstreamSpec)
		want   [][2]string // query of a client, and expression of what the server is asked for
	}{
		"HTTP/1.1": {plain, nil, [][2]string{
			{"watch=true", `1 watch=true&` + soon},
			{"watch=1&timeoutSeconds=300&resourceVersion=5", `1 watch=1&resourceVersion=5&` + soon},
			{"timeoutSeconds=0&watch=true&fieldSelector=a%3Db", `1 watch=true&fieldSelector=a%3Db&` + soon},
			{"watch=true&timeoutSeconds=7", `1 watch=true&timeoutSeconds=7`},
			{"allowWatchBookmarks=true&watch=true&&labelSelector=a",
				`1 allowWatchBookmarks=true&watch=true&&labelSelector=a&` + soon},
			{"watch=false&timeoutSeconds=300", `1 watch=false&timeoutSeconds=300`},
			{"timeoutSeconds=300", `1 timeoutSeconds=300`},
		}},
		"HTTP/1.1 with a bound of its own": {plain, func(u *config.UpstreamSpec) { u.StreamTimeoutSeconds = 60 },
			[][2]string{
				{"watch=true&timeoutSeconds=300", `1 watch=true&timeoutSeconds=300`},
			}},
		"HTTP/1.1 asked for": {newPodServer(t, true, true),
			func(u *config.UpstreamSpec) { u.Protocol = config.HTTP1Protocol }, [][2]string{
				{"watch=true&timeoutSeconds=300", `1 watch=true&` + soon},
			}},
		"HTTP/2": {newPodServer(t, true, true), nil, [][2]string{
			{"watch=true", `2 watch=true`},
			{"watch=true&timeoutSeconds=300", `2 watch=true&timeoutSeconds=300`},
		}},
		"a server without HTTP/2": {newPodServer(t, false, true), nil, [][2]string{
			{"limit=1", `1 limit=1`},
			{"watch=true&timeoutSeconds=300", `1 watch=true&` + soon},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			address := gatewayBefore(t, test.server.URL, test.edit)
			for _, one := range test.want {
				beginWatch(t, address, one[0])
				test.server.mu.Lock()
				got := test.server.asked[len(test.server.asked)-1]
				test.server.mu.Unlock()
				if !regexp.MustCompile("^" + one[1] + "$").MatchString(got) {
					t.Errorf("for %q the server is asked for %q, not %q", one[0], got, one[1])
				}
			}
		})
	}
}

// TestDeadWatchOfClient: a client sees that its watch is over if the connection to the API server carries nothing any
// more, and can begin another one.
func TestDeadWatchOfClient(t *testing.T) {
	s := newPodServer(t, false, false)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	way := relay.New(t, at.Host)
	address := gatewayBefore(t, "http://"+way.Address(), func(u *config.UpstreamSpec) { u.StreamTimeoutSeconds = 1 })
	events, _ := beginWatch(t, address, "watch=true")
	if way.Freeze() == 0 {
		t.Fatal("no connection is frozen")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := events.ReadString('\n')
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || err == io.EOF {
			t.Errorf("the dead watch ends with %v, as if it were whole", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the client is not told that its watch is dead")
	}
	beginWatch(t, address, "watch=true")
}
