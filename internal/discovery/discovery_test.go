package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// server answers the questions of one client.
type server struct {
	mu      sync.Mutex
	answers map[string]Response // by target; what is not there is 404
	fails   error
	asked   []string
	waits   chan struct{} // holds answers back, if set
}

func (s *server) ask(_ context.Context, q Request) (Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, q.Target+" "+q.Known)
	a, found := s.answers[q.Target]
	fails, waits := s.fails, s.waits
	s.mu.Unlock()
	if waits != nil {
		<-waits
	}
	switch {
	case fails != nil:
		return Response{}, fails
	case !found:
		return Response{Code: http.StatusNotFound}, nil
	case q.Known != "" && q.Known == a.ETag:
		return Response{Code: http.StatusNotModified}, nil
	}
	return a, nil
}

func (s *server) set(target string, a Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[target] = a
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func (s *server) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func ok(body, etag string) Response {
	return Response{Code: http.StatusOK, Body: []byte(body), ETag: etag}
}

const (
	aggregatedCore = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
		{"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["create","deletecollection","get"],"subresources":[
			{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]},
			{"subresource":"status","responseKind":{"group":"","version":"v1","kind":"Pod"},"verbs":["get","patch","update"]}]},
		{"resource":"nodes","responseKind":{"group":"","version":"v1","kind":"Node"},"scope":"Cluster","verbs":["get"]},
		{"resource":"orphans","responseKind":{"group":"","version":"","kind":""},"scope":"Namespaced","subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"}}]}]}]}]}`
	aggregatedGroups = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
		{"metadata":{"name":"autoscaling"},"versions":[
			{"version":"v2","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"group":"autoscaling","version":"v2","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced"}]},
			{"version":"v1","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"group":"autoscaling","version":"v1","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced"}]}]},
		{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":%q,"resources":[%s]}]}]}`
	podMetrics = `{"resource":"pods","responseKind":{"group":"metrics.k8s.io","version":"v1beta1","kind":"PodMetrics"},"scope":"Namespaced"}`
)

var (
	podPath     = Path{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
	metricsPath = Path{GroupVersionResource: schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1",
		Resource: "pods"}}
)

func (p Path) sub(name string) Path { p.Subresource = name; return p }

func aggregated() *server {
	return &server{answers: map[string]Response{
		"/api": ok(aggregatedCore, `"1"`), "/apis": ok(fmt.Sprintf(aggregatedGroups, "Current", podMetrics), `"2"`),
	}}
}

// lists is a server without aggregated discovery that serves the same.
func lists() *server {
	return &server{answers: map[string]Response{
		"/api":  ok(`{"kind":"APIVersions","versions":["v1"]}`, ""),
		"/apis": ok(`{"kind":"APIGroupList","groups":[{"name":"autoscaling","versions":[{"version":"v2"},{"version":"v1"}]},{"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}]}]}`, ""),
		"/api/v1": ok(`{"kind":"APIResourceList","resources":[
			{"name":"pods","namespaced":true,"kind":"Pod","verbs":["create","deletecollection","get"]},
			{"name":"pods/eviction","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]},
			{"name":"pods/status","namespaced":true,"kind":"Pod","verbs":["get","patch","update"]},
			{"name":"nodes","kind":"Node","verbs":["get"]},
			{"name":"orphans/scale","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale"}]}`, ""),
		"/apis/autoscaling/v2":         ok(`{"kind":"APIResourceList","resources":[{"name":"horizontalpodautoscalers","namespaced":true,"kind":"HorizontalPodAutoscaler"}]}`, ""),
		"/apis/autoscaling/v1":         ok(`{"kind":"APIResourceList","resources":[{"name":"horizontalpodautoscalers","namespaced":true,"kind":"HorizontalPodAutoscaler"}]}`, ""),
		"/apis/metrics.k8s.io/v1beta1": ok(`{"kind":"APIResourceList","resources":[{"name":"pods","namespaced":true,"kind":"PodMetrics"}]}`, ""),
	}}
}

// TestCatalog: both forms of discovery say the same of the same server.
func TestCatalog(t *testing.T) {
	for name, s := range map[string]*server{"aggregated": aggregated(), "lists": lists()} {
		c := New(Options{Ask: s.ask})
		ctx := context.Background()
		for _, tt := range []struct {
			path Path
			want string
		}{
			{podPath, "&{/v1, Kind=Pod true true [create deletecollection get]}"},
			{podPath.sub("eviction"), "&{policy/v1, Kind=Eviction true false [create]}"},
			{podPath.sub("status"), "&{/v1, Kind=Pod true false [get patch update]}"},
			{podPath.sub("exec"), "<nil>"},
			{Path{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}},
				"&{/v1, Kind=Node false false [get]}"},
			{Path{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "orphans"}}, "<nil>"},
			{Path{schema.GroupVersionResource{Version: "v1", Resource: "orphans"}, "scale"},
				"&{autoscaling/v1, Kind=Scale true false []}"},
			{metricsPath, "&{metrics.k8s.io/v1beta1, Kind=PodMetrics true false []}"},
		} {
			r, err := c.Find(ctx, tt.path)
			if got := fmt.Sprint(r); got != tt.want || err != nil {
				t.Errorf("%s: %v: %s, %v, want %s", name, tt.path, got, err, tt.want)
			}
		}
		hpa := schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}
		if plural, r, err := c.Named(ctx, hpa); plural != "horizontalpodautoscalers" || !r.Namespaced || err != nil {
			t.Errorf("%s: the name of the kind: %q, %v, %v", name, plural, r, err)
		}
		versions, err := c.Versions(ctx,
			schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"})
		if got := fmt.Sprint(versions, err); got != "[v2 v1] <nil>" {
			t.Errorf("%s: versions %s", name, got)
		}
	}
}

// TestUnknownIsAskedFor: a resource that appears is found, and clients that ask for what does not
// exist make the gateway ask no more than once at a time.
func TestUnknownIsAskedFor(t *testing.T) {
	s := aggregated()
	c := New(Options{Ask: s.ask})
	ctx := context.Background()
	gone := Path{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: "widgets"}}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if r, err := c.Find(ctx, gone); r != nil || err != nil {
				t.Errorf("what is not served: %v, %v", r, err)
			}
		})
	}
	all.Wait()
	if asked := s.questions(); len(asked) != 2 {
		t.Errorf("50 requests for what is not served made the questions %q", asked)
	}
	s.set("/apis", ok(`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
		{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced"}]}]}]}`, `"3"`))
	testutil.Becomes(t, "example.com/v1, Kind=Widget", func() string {
		r, err := c.Find(ctx, gone)
		if r == nil {
			return fmt.Sprint(err)
		}
		return r.Kind.String()
	})
	if _, err := c.Find(ctx, podPath); err != nil {
		t.Error(err)
	}
	// What did not change is not sent again.
	if last := s.questions(); !slices.Contains(last, `/api "1"`) {
		t.Errorf("the ETag is not shown: %q", last)
	}
}

// TestWhatWasKnownHolds: a server that cannot be asked later is still what it was. What is not
// known then is an error, not an absence.
func TestWhatWasKnownHolds(t *testing.T) {
	s := aggregated()
	var changes []string
	c := New(Options{Ask: s.ask, Changed: func(err error) { changes = append(changes, fmt.Sprint(err)) }})
	s.fail(errors.New("connection refused"))
	if c.Err() == nil || c.Catalog() != nil {
		t.Error("something is known before anybody asked")
	}
	if _, err := c.Find(context.Background(), podPath); fmt.Sprint(err) != "connection refused" {
		t.Errorf("of a server that does not answer: %v", err)
	}
	if err := c.Err(); !errors.Is(err, ErrPending) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("why nothing is known: %v", err)
	}
	s.fail(nil)
	if err := c.learn(); err != nil || c.Err() != nil {
		t.Fatal(err, c.Err())
	}
	for _, code := range []int{401, 403, 429, 500, 503} {
		s.set("/apis", Response{Code: code})
		if err := c.learn(); err == nil || !strings.Contains(err.Error(), fmt.Sprint(code)) {
			t.Errorf("the answer %d: %v", code, err)
		}
		if r := c.Catalog().Find(metricsPath); r == nil {
			t.Errorf("after the answer %d nothing is known of an aggregated API", code)
		}
	}
	// An aggregated API that is down is still the API that it was.
	for _, resources := range []string{"", podMetrics} {
		s.set("/apis", ok(fmt.Sprintf(aggregatedGroups, "Stale", resources), `"4"`))
		if err := c.learn(); err != nil {
			t.Fatal(err)
		}
		if r := c.Catalog().Find(metricsPath); r == nil || r.Kind.Kind != "PodMetrics" {
			t.Errorf("of a stale API is known: %v", r)
		}
	}
	s.set("/apis", ok(fmt.Sprintf(aggregatedGroups, "Current", ""), `"5"`))
	if err := c.learn(); err != nil || c.Catalog().Find(metricsPath) != nil {
		t.Error("what the server no longer serves is still known", err)
	}
	want := []string{"connection refused", "<nil>",
		"GET /apis was answered 401: the API server does not know the gateway's account", "<nil>"}
	if !slices.Equal(changes, want) {
		t.Errorf("told of %q, want %q", changes, want)
	}
}

// TestNoDiscovery: a server that behaves like an API server, and has no discovery, serves nothing
// that it would say, and is asked about it once a minute at most.
func TestNoDiscovery(t *testing.T) {
	for name, answer := range map[string]Response{
		"404": {Code: 404}, "200": ok(`{"kind":"Status"}`, ""), "text": ok(`hello`, ""),
		"201": {Code: 201, Body: []byte(`{}`)},
	} {
		s := &server{answers: map[string]Response{"/api": answer, "/apis": answer}}
		c := New(Options{Ask: s.ask})
		for range 3 {
			if r, err := c.Find(context.Background(), podPath); r != nil || err != nil {
				t.Errorf("%s: %v, %v", name, r, err)
			}
		}
		if c.Err() != nil || c.Catalog().Len() != 0 || len(s.questions()) != 2 {
			t.Errorf("%s: %v, %d resources, asked %q", name, c.Err(), c.Catalog().Len(), s.questions())
		}
	}
}

// TestImpatient: a request that is over does not wait, and does not end the question for others.
func TestImpatient(t *testing.T) {
	s := aggregated()
	s.waits = make(chan struct{})
	c := New(Options{Ask: s.ask})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Find(ctx, podPath); err == nil {
		t.Error("a request that is over waited")
	}
	close(s.waits)
	if r, err := c.Find(context.Background(), podPath); r == nil || err != nil {
		t.Error(r, err)
	}
}

// FuzzRead: no answer makes the reader fail in another way than by its error.
func FuzzRead(f *testing.F) {
	f.Add([]byte(aggregatedCore), true)
	for _, s := range lists().answers {
		f.Add(s.Body, false)
	}
	f.Fuzz(func(t *testing.T, body []byte, root bool) {
		c := newCatalog()
		if !root {
			_ = addResources(c, schema.GroupVersion{Group: "example.com", Version: "v1"}, body)
		} else if d, err := readDocument(body); err == nil {
			d.addTo(c)
			d.groupVersions()
		}
		for p, r := range c.resources {
			if r.Kind.Kind == "" || r.Kind.Version == "" && p.Version != "" {
				t.Errorf("%v is of the kind %v", p, r.Kind)
			}
		}
	})
}

// TestNoDocumentLater: a server that had the discovery API has it still. Another answer, such as that of a
// load balancer, takes nothing away of what is known.
func TestNoDocumentLater(t *testing.T) {
	for name, answer := range map[string]Response{"404": {Code: 404}, "302": {Code: 302}, "text": ok(`<html>`, ""),
		"cut": ok(aggregatedCore[:200], "")} {
		for which, s := range map[string]*server{"aggregated": aggregated(), "lists": lists()} {
			c := New(Options{Ask: s.ask})
			if err := c.learn(); err != nil {
				t.Fatal(err)
			}
			for _, root := range roots {
				before := s.answers[root]
				s.set(root, answer)
				if err := c.learn(); err == nil || !strings.Contains(err.Error(), "GET "+root) {
					t.Errorf("%s, %s: %s: %v", which, root, name, err)
				}
				for _, p := range []Path{podPath, metricsPath} {
					if c.Catalog().Find(p) == nil {
						t.Errorf("%s, %s: %s: %v is not known any more", which, root, name, p)
					}
				}
				s.set(root, before)
			}
		}
	}
}

// TestUnspeakable: what the server cannot describe is not known, which is not the same as not
// served.
func TestUnspeakable(t *testing.T) {
	stale, down := aggregated(), lists()
	stale.set("/apis", ok(fmt.Sprintf(aggregatedGroups, "Stale", ""), `"3"`))
	down.set("/apis/metrics.k8s.io/v1beta1", Response{Code: http.StatusServiceUnavailable})
	ctx := context.Background()
	for name, s := range map[string]*server{"aggregated": stale, "lists": down} {
		c := New(Options{Ask: s.ask})
		if r, err := c.Find(ctx, metricsPath); r != nil || err == nil {
			t.Errorf("%s: found %v, %v", name, r, err)
		}
		if _, r, err := c.Named(ctx, metricsPath.GroupVersion().WithKind("PodMetrics")); r != nil || err == nil {
			t.Errorf("%s: named %v, %v", name, r, err)
		}
		if v, err := c.Versions(ctx, metricsPath.GroupResource()); len(v) > 0 || err == nil {
			t.Errorf("%s: versions %v, %v", name, v, err)
		}
		gone := Path{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "widgets"}}
		if r, err := c.Find(ctx, gone); r != nil || err != nil {
			t.Errorf("%s: of an API that answers: %v, %v", name, r, err)
		}
	}
}

// TestPreferenceChanges: another order of the versions is news.
func TestPreferenceChanges(t *testing.T) {
	s := lists()
	c := New(Options{Ask: s.ask})
	for _, want := range [][]string{{"v2", "v1"}, {"v1", "v2"}} {
		s.set("/apis", ok(fmt.Sprintf(`{"kind":"APIGroupList","groups":[{"name":"autoscaling","versions":[{"version":%q},{"version":%q}]}]}`, want[0], want[1]), ""))
		if err := c.learn(); err != nil {
			t.Fatal(err)
		}
		got := c.Catalog().Versions(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"})
		if !slices.Equal(got, want) {
			t.Errorf("the versions are %v, want %v", got, want)
		}
	}
}

// TestFailureIsRemembered: clients cannot make the gateway ask a server that fails as often as they come.
func TestFailureIsRemembered(t *testing.T) {
	s := aggregated()
	s.fail(errors.New("connection refused"))
	c := New(Options{Ask: s.ask})
	if _, err := c.Find(context.Background(), podPath); err == nil {
		t.Fatal("found at a server that does not answer")
	}
	failed := c.failure
	c.failedAt = c.failedAt.Add(leastRetry * 1000) // so that the test does not depend on how long it takes
	for range 20 {
		if _, err := c.Find(context.Background(), podPath); !errors.Is(err, failed) {
			t.Error(err)
		}
	}
	if asked := s.questions(); len(asked) != 1 {
		t.Errorf("21 requests made the questions %q", asked)
	}
	s.fail(nil)
	c.failedAt = c.failedAt.Add(-leastRetry * 2000)
	if r, err := c.Find(context.Background(), podPath); r == nil || err != nil {
		t.Error(r, err)
	}
}
