package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// startWithDescriptors runs `gateway serve` with a limit of file descriptors that it cannot raise.
func startWithDescriptors(t *testing.T, limit int, args ...string) *process {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the descriptors of a process are counted in /proc")
	}
	p := newProcess(testutil.FreeAddress(t), testutil.FreeAddress(t), args...)
	limited := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, limit)},
		p.Args...)...)
	limited.Env, limited.Stderr = p.Env, p.log
	p.Cmd = limited
	p.start(t)
	testutil.Eventually(t, "ready", func() bool { return p.get("/readyz").code == 200 })
	testutil.Eventually(t, "logged", func() bool { return strings.Contains(p.log.String(), "msg=serving") })
	return p
}

// idleClients opens connections that send nothing.
func idleClients(t *testing.T, address string, n int) (all []net.Conn) {
	t.Helper()
	for range n {
		nc, err := net.DialTimeout("tcp", address, testutil.Patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		all = append(all, nc)
	}
	return all
}

// probe asks the admin listener by a new connection, as a kubelet does.
func (p *process) probe(path string) int {
	client := http.Client{Timeout: testutil.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + p.admin + path)
	if err != nil {
		return 0
	}
	defer func() { _ = r.Body.Close() }()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

// TestDescriptorsOfProcess: idle clients that take all descriptors they can get keep the process from nothing else: it
// lives, the admin listener answers on new connections, files are read again, and requests of connections that are
// there are served. Further clients are told. With descriptors again all is as before, and the end is clean.
func TestDescriptorsOfProcess(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{64, 1024} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			api, addr := startBackend(t)
			if _, err := api.Put("/v2/orders/o1", []byte(`{"id":"o1"}`)); err != nil {
				t.Fatal(err)
			}
			file := write(t, "limit.yaml", limitPolicy)
			config := write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\n")
			p := startWithDescriptors(t, limit, "--upstream", "http://"+addr, "--dialect", "plain", "--policies", file,
				"--config", config)
			if want := fmt.Sprintf(`msg="fewer file descriptors may be open than connections are configured" descriptors=%d`, limit); !strings.Contains(p.log.String(), want) {
				t.Errorf("the log does not say %q", want)
			}
			early, err := net.Dial("tcp", p.listen)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = early.Close() }()
			reader := bufio.NewReader(early)
			mustServe := func() {
				t.Helper()
				_ = early.SetDeadline(time.Now().Add(testutil.Patience))
				if _, err := io.WriteString(early, "GET /v2/orders/o1 HTTP/1.1\r\nHost: gw\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				r, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(r.Body); r.StatusCode != 200 || err != nil {
					t.Fatalf("a request is answered %d %s, %v", r.StatusCode, body, err)
				}
			}
			mustServe()

			idle := idleClients(t, p.listen, limit+100)
			held := idleClients(t, p.admin, 100)
			for range 20 {
				if livez, readyz := p.probe("/livez"), p.probe("/readyz"); livez != 200 || readyz != 200 {
					t.Fatalf("/livez answers %d and /readyz %d", livez, readyz)
				}
			}
			mustServe()
			// The last of the idle ones was turned away.
			last := idle[len(idle)-1]
			_ = last.SetDeadline(time.Now().Add(testutil.Patience))
			if r, err := http.ReadResponse(bufio.NewReader(last), nil); err != nil || r.StatusCode != 503 ||
				r.Header.Get("Retry-After") == "" {
				t.Errorf("a client too many got %v, %v", r, err)
			}
			testutil.WriteFile(t, file, strings.Replace(limitPolicy, "requests: 50", "requests: 60", 1))
			p.signal(t, syscall.SIGHUP)
			testutil.Eventually(t, "the policies are read again",
				func() bool { return p.value(t, "gateway_policy_generation") == 2 })
			if got := p.value(t, "gateway_policy_reload_failure_total"); got != 0 {
				t.Errorf("%d reloads failed", got)
			}

			for _, nc := range append(idle, held...) {
				_ = nc.Close()
			}
			testutil.Eventually(t, "new clients are served",
				func() bool { return fetch("http://"+p.listen+"/v2/orders/o1").code == 200 })
			mustServe()
			p.signal(t, syscall.SIGTERM)
			_ = early.Close()
			if err := p.Wait(); err != nil {
				t.Errorf("the process ends with %v", err)
			}
		})
	}
}

// TestDescriptorsOfBackends: requests that take all descriptors for connections to the backend leave the admin listener
// its own. Those beyond are answered 503 and do not speak against the backend.
func TestDescriptorsOfBackends(t *testing.T) {
	t.Parallel()
	api, addr := startBackend(t)
	release := make(chan struct{})
	api.SetFault(func(r *backend.Request) backend.Fault {
		if r.Target == "/v2/orders/slow" {
			<-release
		}
		return backend.Fault{}
	})
	const others = 200
	p := startWithDescriptors(t, 64, "--config", write(t, "gateway.yaml", `apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams: [{name: default, dialect: Plain, endpoints: [http://`+addr+`], circuitBreaker: {consecutiveFailures: 1, openSeconds: 60}}]
`))
	answers := make(chan reply, others)
	for range others {
		go func() { answers <- fetch("http://" + p.listen + "/v2/orders/slow") }()
	}
	const short = "the gateway has no file descriptor for a connection to the backend"
	counts := map[string]int{}
	count := func() {
		switch r := <-answers; {
		case r.code == 503 && strings.Contains(r.body, short):
			counts["short"]++
		case r.code == 0 || r.code == 503 && strings.Contains(r.body, "the gateway has as many connections as it may"):
			counts["turned away"]++ // also if the kernel's reset overtakes the answer
		case r.code == 404:
			counts["served"]++
		default:
			counts[fmt.Sprintf("%+v", r)]++
		}
	}
	for counts["short"] == 0 {
		count()
	}
	for range 20 {
		if got := p.probe("/livez"); got != 200 {
			t.Fatalf("/livez answers %d", got)
		}
	}
	close(release)
	for total := 0; total < others; {
		count()
		total = 0
		for _, n := range counts {
			total += n
		}
	}
	if counts["served"] == 0 || counts["served"]+counts["short"]+counts["turned away"] != others {
		t.Errorf("the answers are %v", counts)
	}
	testutil.Eventually(t, "served again", func() bool { return fetch("http://"+p.listen+"/v2/orders/o1").code == 404 })
}

// TestListenerFails: a listener that ends unexpectedly ends the process as SIGTERM does, with a drain, and with exit
// code 1.
func TestListenerFails(t *testing.T) {
	api, addr := startBackend(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	api.SetFault(func(r *backend.Request) backend.Fault {
		if r.Target == "/v2/orders/slow" {
			close(arrived)
			<-release
		}
		return backend.Fault{}
	})
	for _, which := range []string{"public", "admin"} {
		t.Run(which, func(t *testing.T) {
			arrived, release = make(chan struct{}), make(chan struct{})
			c, err := config.Load(write(t, "gateway.yaml", "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\n"),
				config.Flags{Upstream: "http://" + addr, Dialect: "plain", Listen: "127.0.0.1:0", Admin: "127.0.0.1:0"})
			if err != nil {
				t.Fatal(err)
			}
			var text lockedBuffer
			log, closeLog, err := openLog(&text, &c.Telemetry.Log)
			if err != nil {
				t.Fatal(err)
			}
			defer closeLog()
			n, err := newNode(c, log)
			if err != nil {
				t.Fatal(err)
			}
			listen := n.sockets.text()
			ended := make(chan error, 1)
			go func() { ended <- n.run(make(chan os.Signal)) }()
			testutil.Eventually(t, "serving", func() bool { return strings.Contains(text.String(), "msg=serving") })
			slow := make(chan reply, 1)
			go func() { slow <- fetch("http://" + listen + "/v2/orders/slow") }()
			<-arrived
			l := n.sockets.admin
			if which == "public" {
				l = n.sockets.offered()[1]
			}
			if err := l.TCPListener.Close(); err != nil {
				t.Fatal(err)
			}
			testutil.Eventually(t, "draining", func() bool {
				return strings.Contains(text.String(), `msg=draining cause="a listener failed: `)
			})
			close(release)
			if got := <-slow; got.code != 404 {
				t.Errorf("the request in progress is answered %+v, want the backend's 404", got)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "a listener failed: ") {
				t.Errorf("the gateway ends with %v", err)
			}
		})
	}
}
