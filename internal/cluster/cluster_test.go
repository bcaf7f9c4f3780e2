package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-gateway/gateway/internal/cluster/clustertest"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/testutil/relay"
)

// The paths of collections.
const (
	gatewayAPI = "/apis/gateway.networking.k8s.io/v1"
	routesPath = gatewayAPI + "/namespaces/ns/httproutes/"
)

// run is a Watcher that runs, with the tables that it brought into force.
type run struct {
	*Watcher
	stop func()

	mu       sync.Mutex
	tables   []*routing.Table
	refuse   error
	unserved map[string]string
}

func start(t *testing.T, s *clustertest.Server, identity string, edits ...func(*Options)) *run {
	r := &run{}
	o := Options{
		Server: s.URL, Account: noAccount{}, Published: []string{"192.0.2.1"}, Identity: identity,
		Lease: types.NamespacedName{Namespace: "ns", Name: "lease"}, Log: slog.New(slog.DiscardHandler),
		Apply: func(table *routing.Table) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.refuse == nil {
				r.tables = append(r.tables, table)
			}
			return r.refuse
		},
		Unserved: func() map[string]string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.unserved
		},
	}
	for _, edit := range edits {
		edit(&o)
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Watcher = w
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	r.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(r.stop)
	return r
}

// table is the one in force; nil if there is none.
func (r *run) table() *routing.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tables) == 0 {
		return nil
	}
	return r.tables[len(r.tables)-1]
}

// until waits for something to be so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it has not come about that %s", what)
		}
	}
}

func fill(s *clustertest.Server) {
	s.Put(gatewayAPI+"/gatewayclasses/ours", `{"metadata":{"name":"ours","generation":1},"spec":{"controllerName":"admission-gateway.io/gateway"}}`)
	s.Put(gatewayAPI+"/namespaces/ns/gateways/gw", `{"metadata":{"name":"gw","namespace":"ns","generation":1},"spec":{"gatewayClassName":"ours","listeners":[{"name":"http","port":80,"protocol":"HTTP"}]}}`)
	s.Put("/api/v1/namespaces/ns", `{"metadata":{"name":"ns"}}`)
	s.Put("/api/v1/namespaces/ns/services/app", `{"metadata":{"name":"app","namespace":"ns"},"spec":{"ports":[{"name":"http","port":80}]}}`)
	s.Put("/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/app", slice("10.0.0.1"))
	s.Put(routesPath+"r", route("r", "/a", 1))
}

func slice(address string) string {
	return fmt.Sprintf(`{"metadata":{"name":"app","namespace":"ns","labels":{"kubernetes.io/service-name":"app"}},"addressType":"IPv4","ports":[{"name":"http","port":8080}],"endpoints":[{"addresses":[%q]}]}`, address)
}

func route(name, path string, generation int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","generation":%d},"spec":{"parentRefs":[{"name":"gw"}],"rules":[{"matches":[{"path":{"value":%q}}],"backendRefs":[{"name":"app","port":80}]}]}}`, name, generation, path)
}

// serves reports whether the table in force leads from the path to the server.
func (r *run) serves(path, server string) bool {
	table := r.table()
	if table == nil {
		return false
	}
	for _, one := range table.Routes {
		if one.Matches[0].Path.Value == path {
			servers := table.Backends[one.Backends[0].Backend].Servers
			return len(servers) == 1 && servers[0] == server
		}
	}
	return false
}

// TestWatch: objects come into force as they change, and their statuses are written, once.
func TestWatch(t *testing.T) {
	s := clustertest.New(t)
	s.Fail(false, "/tcproutes", "/listenersets")
	fill(s)
	r := start(t, s, "a")
	until(t, "the route is in force", func() bool { return r.serves("/a", "10.0.0.1:8080") })
	until(t, "it is ready", func() bool { return r.Ready() == nil })
	until(t, "the status says so", func() bool { return isAccepted(s.Get(routesPath+"r"), 1) })
	s.Put("/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/app", slice("10.0.0.2"))
	until(t, "the other endpoint is in force", func() bool { return r.serves("/a", "10.0.0.2:8080") })
	s.Put(routesPath+"r", route("r", "/b", 2))
	until(t, "the changed route is in force",
		func() bool { return r.serves("/b", "10.0.0.2:8080") && !r.serves("/a", "10.0.0.2:8080") })
	until(t, "the status is of the new generation", func() bool { return isAccepted(s.Get(routesPath+"r"), 2) })
	s.Put(routesPath+"r", route("r", "/b", 2)) // somebody else takes the status out
	until(t, "the status is there again", func() bool { return isAccepted(s.Get(routesPath+"r"), 2) })
	if a := r.Activities()["HTTPRoute"]; a.Lists != 1 || a.Events < 2 || a.LastEvent.IsZero() ||
		r.Activities()["Gateway"].Lists != 1 || r.Lag() <= 0 {
		t.Errorf("what was read is %+v, with a lag of %s", r.Activities(), r.Lag())
	}
	s.Remove(routesPath + "r")
	until(t, "no route is in force", func() bool { return len(r.table().Routes) == 0 })
	until(t, "the Gateway has no route", func() bool {
		text, _ := json.Marshal(s.Get(gatewayAPI + "/namespaces/ns/gateways/gw"))
		return strings.Contains(string(text), `"attachedRoutes":0`)
	})
	if n := s.Written("gatewayclasses/ours/status"); n != 1 {
		t.Errorf("the status of the GatewayClass was written %d times", n)
	}
	if n := s.Written("httproutes/r/status"); n != 3 {
		t.Errorf("the status of the route was written %d times", n)
	}
}

// TestUnservedListener: the status of a Gateway says that a listener takes no requests, and that it takes some again,
// although no object has changed.
func TestUnservedListener(t *testing.T) {
	s := clustertest.New(t)
	fill(s)
	r := start(t, s, "a")
	says := func(parts ...string) func() bool {
		return func() bool {
			status, _ := s.Get(gatewayAPI + "/namespaces/ns/gateways/gw")["status"].(map[string]any)
			text, _ := json.Marshal(status["listeners"])
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(string(text), part) })
		}
	}
	until(t, "the listener is programmed", says(`"reason":"Programmed"`))
	for _, one := range []struct {
		unserved map[string]string
		parts    []string
	}{
		{map[string]string{"ns/gw/http": "in use"}, []string{`"reason":"PortUnavailable"`, `"reason":"Pending"`,
			`"message":"in use"`}},
		{nil, []string{`"reason":"Accepted"`, `"reason":"Programmed"`}},
	} {
		r.mu.Lock()
		r.unserved = one.unserved
		r.mu.Unlock()
		r.Recheck()
		until(t, "the status says so", says(one.parts...))
	}
	if tables := len(r.tables); tables != 1 {
		t.Errorf("%d tables came into force, want one", tables)
	}
}

func isAccepted(object map[string]any, generation int) bool {
	text, _ := json.Marshal(object["status"])
	return strings.Contains(string(text), `"Accepted"`) &&
		strings.Contains(string(text), fmt.Sprintf(`"observedGeneration":%d`, generation))
}

// TestLosingTheAPIServer: what was read stays in force, and changes of the time without it come into force afterwards.
func TestLosingTheAPIServer(t *testing.T) {
	s := clustertest.New(t)
	fill(s)
	r := start(t, s, "a")
	until(t, "the route is in force", func() bool { return r.serves("/a", "10.0.0.1:8080") })
	s.Fail(true)
	s.CloseClientConnections()
	s.Put(routesPath+"r", route("r", "/b", 2))
	if !r.serves("/a", "10.0.0.1:8080") || r.Ready() != nil {
		t.Error("the route is no longer in force")
	}
	s.Fail(false)
	until(t, "the changed route is in force", func() bool { return r.serves("/b", "10.0.0.1:8080") })
}

// TestStartWithoutAPIServer: nothing is in force, and the gateway is not ready, until everything has been read.
func TestStartWithoutAPIServer(t *testing.T) {
	s := clustertest.New(t)
	fill(s)
	s.Fail(true)
	r := start(t, s, "a")
	r.notice()
	if err := r.Ready(); err == nil || r.table() != nil {
		t.Errorf("it is ready (%v), with %v", err, r.table())
	}
	s.Fail(false)
	until(t, "the route is in force", func() bool { return r.serves("/a", "10.0.0.1:8080") && r.Ready() == nil })
}

// TestDefinitionThatAppears: a kind that the API server gets later is watched from then on.
func TestDefinitionThatAppears(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := clustertest.New(t)
	s.Fail(false, "/httproutes")
	fill(s)
	r := start(t, s, "a")
	until(t, "the Gateway is in force without routes",
		func() bool { return r.table() != nil && len(r.table().Listeners) == 1 })
	if len(r.table().Routes) > 0 {
		t.Error("there are routes")
	}
	s.Fail(false)
	until(t, "the route is in force", func() bool { return r.serves("/a", "10.0.0.1:8080") })
}

// TestOneWriter: of two gateways one writes statuses, and when it ends the other one.
func TestOneWriter(t *testing.T) {
	s := clustertest.New(t)
	fill(s)
	a := start(t, s, "a")
	until(t, "a writes", func() bool { return isAccepted(s.Get(routesPath+"r"), 1) })
	b := start(t, s, "b")
	until(t, "the route is in force at b", func() bool { return b.serves("/a", "10.0.0.1:8080") })
	if b.writer.leads() || !a.writer.leads() {
		t.Error("b writes beside a, or a does not")
	}
	a.stop()
	s.Put(routesPath+"r", route("r", "/b", 2))
	until(t, "b writes", func() bool { return b.writer.leads() && isAccepted(s.Get(routesPath+"r"), 2) })
	if holder := s.Get(
		"/apis/coordination.k8s.io/v1/namespaces/ns/leases/lease")["spec"].(map[string]any)["holderIdentity"]; holder != "b" {
		t.Errorf("the holder of the Lease is %v", holder)
	}
}

// TestRefusedTable: a table that cannot be brought into force leaves the one before, and the gateway says why.
func TestRefusedTable(t *testing.T) {
	s := clustertest.New(t)
	fill(s)
	r := start(t, s, "a")
	until(t, "the route is in force", func() bool { return r.serves("/a", "10.0.0.1:8080") && r.Ready() == nil })
	r.mu.Lock()
	r.refuse = errors.New("no socket")
	r.mu.Unlock()
	s.Put(routesPath+"r", route("r", "/b", 2))
	until(t, "the reason is known",
		func() bool { return r.Ready() != nil && strings.Contains(r.Ready().Error(), "no socket") })
	r.mu.Lock()
	r.refuse = nil
	r.mu.Unlock()
	until(t, "the same table is tried again", func() bool { return r.serves("/b", "10.0.0.1:8080") })
	s.Put(routesPath+"r", route("r", "/c", 3))
	until(t, "the next table is in force", func() bool { return r.serves("/c", "10.0.0.1:8080") && r.Ready() == nil })
}

// noAccount is who the gateway is to a server that asks for nothing.
type noAccount struct{}

func (noAccount) Authorize(*http.Request) error { return nil }

func (noAccount) Refused() bool { return false }

// TestDeadConnection: connections that carry nothing any more are noticed though neither end closes them. What has
// changed meanwhile is in force then, and nothing is listed anew. The age says since when nothing is heard of the API
// server.
func TestDeadConnection(t *testing.T) {
	s := clustertest.New(t)
	fill(s)
	way := relay.New(t, s.Listener.Addr().String())
	const period, grace = time.Second, 300 * time.Millisecond
	r := start(t, s, "a", func(o *Options) {
		o.Server = "http://" + way.Address()
		o.Liveness = state.Liveness{Period: period, Grace: grace, Open: time.Second}
	})
	until(t, "the route is in force", func() bool { return r.serves("/a", "10.0.0.1:8080") })
	if n := way.Freeze(); n == 0 {
		t.Fatal("no connection is frozen")
	}
	s.Put(routesPath+"r", route("r", "/b", 2))
	until(t, "the changed route is in force", func() bool { return r.serves("/b", "10.0.0.1:8080") })
	if a := r.Activities()["HTTPRoute"]; a.Silences == 0 || a.Lists != 1 {
		t.Errorf("what was read is %+v", a)
	}
	until(t, "all is heard of again", func() bool { return r.Age() < period })
	s.Fail(true)
	way.Freeze()
	until(t, "the objects are old", func() bool { return r.Age() > period+grace+time.Second })
	if err := r.Ready(); err != nil {
		t.Errorf("what was read is not in force any more: %v", err)
	}
	if a := r.Activities()["HTTPRoute"]; a.Age < time.Second {
		t.Errorf("the age of a kind that is not heard of is %s", a.Age)
	}
	s.Fail(false)
	until(t, "the objects are known again", func() bool { return r.Age() < period })
}
