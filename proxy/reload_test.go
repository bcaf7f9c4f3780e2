package proxy

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	memory "github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// reloadedConfig is a configuration in front of a plain API; every other version has another upstream.
func reloadedConfig(t testing.TB, backend string, version int) *config.Configuration {
	t.Helper()
	c, err := config.Load("", config.Flags{Upstream: backend, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams[0].ResponseTimeoutSeconds += config.Seconds(version / 2 % 2)
	c.Limits.URIBytes += int32(version)
	return c
}

// replace has the next version of a gateway serve.
func replace(t testing.TB, g *Gateway, backend string, version int, set func() *policies.Set) *Gateway {
	t.Helper()
	next, err := g.Next(Options{Config: reloadedConfig(t, backend, version), Policies: set,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	next.Replace(g, func() {})
	return next
}

// TestReplaceUnderLoad: while the gateway is replaced again and again, no request fails, no update is lost although the
// backend compares no versions, and a limit admits as many requests as it says.
func TestReplaceUnderLoad(t *testing.T) {
	const workers, each, limit = 20, 10, 150
	const patches = workers * each
	store := &storeOf{tag: noTag}
	store.put([]byte(`{"id":"n1"}`))
	backend := httptest.NewServer(store)
	defer backend.Close()
	set := policiestest.LoadFiles(t, policiestest.Write(t, "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: notes}\nspec:\n  version: v1\n"+
		"  names: {plural: notes, kind: Note}\n  paths: {collection: /v1/notes, item: '/v1/notes/{name}'}\n  fields: {name: id}\n  concurrency: BestEffort\n  backend: {patch: Emulated}\n"+
		"  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {id: {type: string}}}}\n"+
		"---\napiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: patches}\nspec:\n  key: ClientAddress\n  requests: "+fmt.Sprint(limit)+"\n  periodSeconds: 86400\n"))
	current := func() *policies.Set { return set }
	g := newTestGateway(t, reloadedConfig(t, backend.URL, 0), current)
	address := serveGateway(t, g, nil)

	done := make(chan struct{})
	var swaps sync.WaitGroup
	versions, last := 0, g
	swaps.Go(func() {
		for versions = 1; ; versions++ {
			last = replace(t, last, backend.URL, versions, current)
			select {
			case <-done:
				return
			default:
			}
		}
	})
	var clients sync.WaitGroup
	var admitted, limited atomic.Int32
	patch := func(i int) {
		switch code, body := patchNote(t, address, i); code {
		case 200:
			admitted.Add(1)
		case 429:
			limited.Add(1)
		default:
			t.Errorf("patch %d is answered %d %s", i, code, body)
		}
	}
	for worker := range workers {
		clients.Go(func() {
			for i := range each {
				patch(worker*each + i)
			}
		})
	}
	clients.Wait()
	close(done)
	swaps.Wait()
	if admitted.Load() != limit || limited.Load() != patches-limit {
		t.Errorf("%d patches were admitted and %d limited, want %d and %d", admitted.Load(), limited.Load(), limit,
			patches-limit)
	}
	if stored := strings.Count(store.stored(), `"f`); stored != limit {
		t.Errorf("%d of %d patches are stored after %d versions of the gateway", stored, limit, versions)
	}
	testutil.Eventually(t, "the versions before let go", func() bool {
		for _, b := range g.routes.backends {
			if b.lease.holders.Load() != 0 && b != last.routes.backends[0] {
				return false
			}
		}
		return last.routes.backends[0].lease.holders.Load() == 1
	})
}

// TestReplaceKeepsWatch: a watch goes on across a replacement, and does not keep the backend of the gateway before from
// being let go. A connection that waits for its next request gets that one served by the new gateway.
func TestReplaceKeepsWatch(t *testing.T) {
	api := memory.New(memory.Options{})
	upstream, err := api.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	set := policiestest.LoadFiles(t, "testdata/policies/widgets.yaml")
	current := func() *policies.Set { return set }
	g := newTestGateway(t, reloadedConfig(t, "http://"+upstream, 0), current)
	address := "http://" + serveGateway(t, g, nil)
	watch, err := http.Get(address + widgetsPath + "?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	events := bufio.NewReader(watch.Body)
	put := func(name string) {
		t.Helper()
		if _, err := api.Put(widgetsPath+"/"+name, []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
			t.Fatal(err)
		}
		if line, err := events.ReadString('\n'); err != nil || !strings.Contains(line, name) {
			t.Fatalf("of %s came the event %q, %v", name, line, err)
		}
	}
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	get := func(path string) int {
		t.Helper()
		answer, err := client.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if _, err := io.ReadAll(answer.Body); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode
	}
	put("before")
	long := widgetsPath + "/before?" + strings.Repeat("x", 8192-len(widgetsPath)-len("/before?"))
	if got := get(long); got != 200 {
		t.Errorf("a target as long as it may be is answered %d", got)
	}
	if got := get(long + "x"); got != 414 {
		t.Errorf("a target that is too long is answered %d", got)
	}
	before := g.routes.backends[0]
	next := replace(t, g, "http://"+upstream, 3, current)
	if next.routes.backends[0] == before {
		t.Fatal("the backend is shared")
	}
	testutil.Eventually(t, "the backend is let go", func() bool { return before.lease.holders.Load() == 0 })
	put("after")
	if got := get(long + "xxx"); got != 200 {
		t.Errorf("a target as long as it may be now is answered %d", got)
	}
}

// TestReplaceLetsSlowStartsGoOn: a server that a replacement adds to an upstream starts slowly, and neither a
// replacement that keeps the upstream nor one that changes its settings gives it its full share.
func TestReplaceLetsSlowStartsGoOn(t *testing.T) {
	var asked [2]atomic.Int64
	var servers []string
	for i := range asked {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked[i].Add(1) }))
		t.Cleanup(server.Close)
		servers = append(servers, server.URL)
	}
	set := policiestest.LoadFiles(t, t.TempDir())
	current := func() *policies.Set { return set }
	configuration := func(version, servers int, all []string) *config.Configuration {
		c := reloadedConfig(t, all[0], version)
		c.Upstreams[0].Endpoints, c.Upstreams[0].SlowStartSeconds = all[:servers], 86400
		return c
	}
	g := newTestGateway(t, configuration(0, 1, servers), current)
	address := "http://" + serveGateway(t, g, nil)
	for _, c := range []struct {
		name             string
		version, servers int
		isKept           bool
	}{
		{"a server is added", 0, 2, false},
		{"the upstream is kept", 1, 2, true},
		{"its settings change", 2, 2, false},
	} {
		next, err := g.Next(Options{Config: configuration(c.version, c.servers, servers), Policies: current,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		next.Replace(g, func() {})
		if isKept := next.routes.backends[0] == g.routes.backends[0]; isKept != c.isKept {
			t.Errorf("%s: the backend is kept: %v", c.name, isKept)
		}
		g = next
		const requests = 500
		before := asked[1].Load()
		for range requests {
			answer, err := http.Get(address + "/any")
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
		}
		// 45 of 500 are expected; a full share is 250.
		if n := asked[1].Load() - before; n < 10 || n > 110 {
			t.Errorf("%s: the server got %d of %d requests", c.name, n, requests)
		}
	}
}
