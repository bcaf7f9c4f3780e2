package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

const defaultClass = `
apiVersion: admission-gateway.io/v1alpha1
kind: StateSource
metadata: {name: classes}
spec: {resource: {apiVersion: storage.k8s.io/v1, resource: storageclasses}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: default-class}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [persistentvolumeclaims]}]
  defaults:
  - field: spec.storageClassName
    valueExpression: "state.classes.filter(c, c.metadata.?annotations[?'storageclass.kubernetes.io/is-default-class'].orValue('') == 'true').map(c, c.metadata.name)[?0]"
  - field: metadata.annotations[example.com/classes]
    valueExpression: "state.classes.filter(c, c.metadata.?annotations[?'storageclass.kubernetes.io/is-default-class'].orValue('') == 'true').map(c, c.metadata.name).join(',')"
`

// claims is a store of classes that answers a claim with what it was sent.
type claims struct{ *classStore }

// ServeHTTP implements http.Handler.
func (c claims) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		c.classStore.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.Copy(w, r.Body)
}

// TestDefaultStorageClass is the example of the API conventions: claims without a class get the one that an annotation
// marks, also while the mark moves and requests run; all that a request is given is of one moment (DEF-4, DEF-5).
func TestDefaultStorageClass(t *testing.T) {
	s := newClassStore(t)
	s.http.Handler = claims{s}
	set := policiestest.Load(t, defaultClass)
	c, err := config.Load("", config.Flags{Upstream: "http://" + s.address, Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	address := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
	given := func(spec string) (class, seen string) {
		raw := string(exchangeRaw(t, address, scenario.JSON("POST /api/v1/namespaces/team-a/persistentvolumeclaims",
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{`+spec+`}}`)))
		_, body, _ := strings.Cut(raw, "\r\n\r\n")
		var claim struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct{ StorageClassName *string }
		}
		if err := json.Unmarshal([]byte(body), &claim); err != nil || !strings.HasPrefix(raw, "HTTP/1.1 201 ") {
			t.Errorf("%s: %v", raw, err)
			return "", ""
		}
		if claim.Spec.StorageClassName == nil {
			return "none", claim.Metadata.Annotations["example.com/classes"]
		}
		return *claim.Spec.StorageClassName, claim.Metadata.Annotations["example.com/classes"]
	}
	testutil.Becomes(t, "fast", func() string { class, _ := given(""); return class })
	for _, mark := range []string{"slow", "fast", "nothing"} {
		s.setDefault(mark)
		want := strings.Replace(mark, "nothing", "none", 1)
		testutil.Becomes(t, want, func() string { class, _ := given(""); return class })
		if class, _ := given(`"storageClassName":"own"`); class != "own" {
			t.Errorf("a class that was named became %q", class)
		}
		if class, _ := given(`"storageClassName":""`); class != "" {
			t.Errorf("no class, as was asked for, became %q", class)
		}
	}
	var stop atomic.Bool
	var changing, load sync.WaitGroup
	changing.Go(func() {
		for i := 0; !stop.Load(); i++ {
			s.setDefault([]string{"fast", "slow"}[i%2])
			time.Sleep(time.Millisecond)
		}
	})
	for range 4 {
		load.Go(func() {
			for range 100 {
				class, seen := given("")
				if first, _, _ := strings.Cut(seen, ","); class != first && (class != "none" || seen != "") {
					t.Errorf("a claim got the class %q of the classes %q", class, seen)
				}
			}
		})
	}
	load.Wait()
	stop.Store(true)
	changing.Wait()
}
