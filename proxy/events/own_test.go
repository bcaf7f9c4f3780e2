package events

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/admission-gateway/gateway/internal/testutil"
)

var gatewayPod = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "gateways", Name: "gateway-0"}

// TestOwn: what fails has an event, again and again one series, and what is well again has one if it failed. A backend
// that fails is not asked to record that.
func TestOwn(t *testing.T) {
	r, a := newRecorder(t, nil)
	own := NewOwn(r, "cluster", gatewayPod)
	want := ""
	const prefix = "POST application/json /apis/events.k8s.io/v1/namespaces/gateways/events "
	becomes := func(line string) {
		t.Helper()
		want += line
		testutil.Becomes(t, want, a.seen)
		want += "\n"
	}
	own.Recovers(Subject{Kind: Policies}, "nothing failed before")
	own.Fails(Subject{Kind: Upstream, Name: "cluster"}, "cannot be recorded")
	own.Fails(Subject{Kind: Policies}, "a.yaml:3: no such field")
	becomes(prefix + "Warning PoliciesRejected Load admission-gateway.io/gateway of Pod/gateways/gateway-0: a.yaml:3: no such field")
	own.Fails(Subject{Kind: Policies}, "a.yaml:4: no such field")
	becomes("PATCH application/strategic-merge-patch+json /apis/events.k8s.io/v1/namespaces/gateways/events/NAME (2 times)")
	own.Fails(Subject{Kind: Upstream, Name: "shop", Part: "10.0.0.1:80"}, "a server fails")
	becomes(prefix + "Warning UpstreamFailed Ask admission-gateway.io/gateway of Pod/gateways/gateway-0: a server fails")
	own.Fails(Subject{Kind: Upstream, Name: "users"}, "it does not answer")
	becomes(prefix + "Warning UpstreamFailed Ask admission-gateway.io/gateway of Pod/gateways/gateway-0: it does not answer")
	own.Recovers(Subject{Kind: Upstream, Name: "shop"}, "another part of it")
	own.Recovers(Subject{Kind: Upstream, Name: "shop", Part: "10.0.0.1:80"}, "a server answers")
	becomes(prefix + "Normal UpstreamRecovered Ask admission-gateway.io/gateway of Pod/gateways/gateway-0: a server answers")
	own.Recovers(Subject{Kind: Policies}, "all is well")
	becomes(prefix + "Normal PoliciesInForce Load admission-gateway.io/gateway of Pod/gateways/gateway-0: all is well")
	own.Recovers(Subject{Kind: Upstream, Name: "cluster"}, "it answers again")
	becomes(prefix + "Normal UpstreamRecovered Ask admission-gateway.io/gateway of Pod/gateways/gateway-0: it answers again")
	own.Fails(Subject{Kind: Bundle, Name: "b"}, "x")
	becomes(prefix + "Warning BundleFailed Update admission-gateway.io/gateway of Pod/gateways/gateway-0: x")
	own.Fails(Subject{Kind: State, Name: "/v1/users"}, "y")
	becomes(prefix + "Warning StateUnread Read admission-gateway.io/gateway of Pod/gateways/gateway-0: y")
	(*Own)(nil).Fails(Subject{}, "")
	(*Own)(nil).Recovers(Subject{}, "")
}

// TestOwnBounds: events about the gateway itself are bounded, and a flood of refusals does not use up their room.
func TestOwnBounds(t *testing.T) {
	r, a := newRecorder(t, nil)
	for i := range 10 * burst {
		r.Record(pod(fmt.Sprint("web-", i)), Denied, "create", "no")
	}
	testutil.Eventually(t, "the flood is over", func() bool { return a.count(Sent)+a.count(Dropped) == 10*burst })
	sent, dropped := a.count(Sent), a.count(Dropped)
	own := NewOwn(r, "", gatewayPod)
	const all = 10 * ownBurst
	for i := range all {
		own.Fails(Subject{Kind: State, Name: fmt.Sprint(i)}, "no")
	}
	testutil.Eventually(t, "all are done", func() bool { return a.count(Sent)+a.count(Dropped) == sent+dropped+all })
	if got := a.count(Sent) - sent; got < ownBurst || got > all/2 {
		t.Errorf("%d of %d events were sent", got, all)
	}
}

func TestPodIn(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "namespace"), []byte("gateways\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := func() (string, error) { return "gateway-0", nil }
	if got, isPod := podIn(folder, named); !isPod || got != gatewayPod {
		t.Errorf("got %v, %v", got, isPod)
	}
	if _, isPod := podIn(t.TempDir(), named); isPod {
		t.Error("no namespace is a Pod")
	}
	if _, isPod := podIn(folder, func() (string, error) { return "", errors.New("no name") }); isPod {
		t.Error("no name is a Pod")
	}
	t.Setenv("POD_NAMESPACE", "gateways")
	t.Setenv("POD_NAME", "gateway-0")
	if got, isPod := podIn(t.TempDir(), func() (string, error) { return "node-7", nil }); !isPod || got != gatewayPod {
		t.Errorf("got %v, %v by the environment", got, isPod)
	}
}
