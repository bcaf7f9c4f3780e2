package gatewayapi

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// many is how many routes there are.
const many = 10_000

// A changed route of 10,000 is soon in force, and no request fails meanwhile. The times are written to the log of the
// test.
func TestManyRoutes(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 routes take a minute to be made")
	}
	raiseFront(t, "many")
	c := newClient(t)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for n := next.Add(1); n < many; n = next.Add(1) {
				if err := c.Create(t.Context(), routeOf(n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	began := time.Now()
	g := startGateway(t, gatewayOptions{controller: "many", pool: []string{"10.100.5.0/24"}})
	url := "http://" + addressOf(t, "many", "front") + "/"
	awaitAnswer(t, once, url, "h9999.example.com", http.StatusOK)
	t.Logf("%d routes are in force %v after the start", many, time.Since(began))
	eventually(t, "the statuses of the routes are written", func() bool {
		for n := many - 20; n < many; n++ {
			var route gatewayv1.HTTPRoute
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: "many", Name: fmt.Sprint("h", n)},
				&route); err != nil || len(route.Status.Parents) == 0 {
				return false
			}
		}
		return true
	})
	l := startLoad(t, 1, url, "shop.example.com")
	l.await(t, 100)
	keeping := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	var times []time.Duration
	for n := range int64(20) {
		host := fmt.Sprintf("moved-%d.example.com", n)
		at := moveRoute(t, c, fmt.Sprint("h", 100+n*300), host)
		for code := 0; code != http.StatusOK; {
			time.Sleep(rest)
			code, _ = ask(t, keeping, url, host)
			if time.Since(at) > time.Minute {
				t.Fatalf("a changed route is not in force after a minute: %s", g.Tail())
			}
		}
		times = append(times, time.Since(at))
	}
	l.allSucceeded(t)
	slices.Sort(times)
	t.Logf("a changed route of %d is in force after %v in the middle, and %v at most, from the answer to its writer", many, times[len(times)/2], times[len(times)-1])
}

// routeOf returns the route of a number.
func routeOf(n int64) *gatewayv1.HTTPRoute {
	port, path, kind := gatewayv1.PortNumber(80), fmt.Sprint("/path-", n), gatewayv1.PathMatchPathPrefix
	root := "/"
	return &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprint("h", n)},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "front"}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", n))},
			Rules: []gatewayv1.HTTPRouteRule{{
				Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &path}},
					{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &root}}},
				BackendRefs: []gatewayv1.HTTPBackendRef{
					{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
						Name: "echo", Port: &port,
					}}}},
			}},
		},
	}
}

// moveRoute gives a route another host, and returns when the API server had it.
func moveRoute(t *testing.T, c client.Client, name, host string) time.Time {
	t.Helper()
	var route gatewayv1.HTTPRoute
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "many", Name: name}, &route); err != nil {
		t.Fatal(err)
	}
	before := route.DeepCopy()
	route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(host)}
	if err := c.Patch(t.Context(), &route, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return time.Now()
}
