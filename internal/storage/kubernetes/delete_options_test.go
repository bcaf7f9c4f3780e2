package kubernetes

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// TestCompleteDeleteOptions: policies see the options of a deletion as the storage of the server completes them.
func TestCompleteDeleteOptions(t *testing.T) {
	const running, namespaced = `{"spec":{"nodeName":"a","terminationGracePeriodSeconds":30}}`,
		`{"metadata":{"uid":"u"}}`
	for name, c := range map[string]struct{ group, plural, object, options, want string }{
		"a Pod that runs":              {"", "pods", running, `{}`, `{"gracePeriodSeconds":30}`},
		"a Pod that runs, and a grace": {"", "pods", running, `{"gracePeriodSeconds":5}`, `{"gracePeriodSeconds":5}`},
		"a Pod that runs nowhere": {"", "pods", `{"spec":{"terminationGracePeriodSeconds":30}}`,
			`{"gracePeriodSeconds":5}`, `{"gracePeriodSeconds":0}`},
		"a Pod that has failed": {"", "pods", `{"spec":{"nodeName":"a"},"status":{"phase":"Failed"}}`,
			`{"gracePeriodSeconds":5}`, `{"gracePeriodSeconds":0}`},
		"a Pod that is going":         {"", "pods", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":9},"spec":{}}`, `{}`, `{"gracePeriodSeconds":9}`},
		"a Pod that is going, sooner": {"", "pods", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":9},"spec":{}}`, `{"gracePeriodSeconds":2}`, `{"gracePeriodSeconds":2}`},
		"a Namespace":                 {"", "namespaces", namespaced, `{}`, `{"preconditions":{"uid":"u"}}`},
		"a Namespace of a version": {"", "namespaces", namespaced, `{"preconditions":{"resourceVersion":"7"}}`,
			`{"preconditions":{"uid":"u","resourceVersion":"7"}}`},
		"a Namespace with another uid": {"", "namespaces", namespaced, `{"preconditions":{"uid":"x"}}`,
			`{"preconditions":{"uid":"x"}}`},
		"a definition": {"apiextensions.k8s.io", "customresourcedefinitions", namespaced, `{}`,
			`{"preconditions":{"uid":"u"}}`},
		"pods of another group":   {"metrics.k8s.io", "pods", running, `{}`, ``},
		"another kind with a uid": {"", "configmaps", namespaced, `{}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			complete := optionsCompleterOf(&resource.Info{APIPrefix: "api", Group: c.group, Resource: c.plural})
			if complete == nil || c.want == "" {
				if complete != nil || c.want != "" {
					t.Fatalf("there is a function: %t", complete != nil)
				}
				return
			}
			var o metav1.DeleteOptions
			if err := json.Unmarshal([]byte(c.options), &o); err != nil {
				t.Fatal(err)
			}
			complete(&o, parsed(t, c.object).Root())
			if got, err := json.Marshal(o); string(got) != c.want || err != nil {
				t.Errorf("%s, want %s (%v)", got, c.want, err)
			}
		})
	}
}

// TestIsChange: of two kinds the generation counts a part of the metadata, too.
func TestIsChange(t *testing.T) {
	const stored = `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"size":1}}`
	for name, c := range map[string]struct {
		group, plural, object string
		want                  bool
	}{
		"nothing": {"apps", "deployments", stored, false},
		"spec": {"apps", "replicasets",
			`{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"size":2}}`, true},
		"annotations of a Deployment": {"apps", "deployments",
			`{"metadata":{"labels":{"a":"b"}},"spec":{"size":1}}`, true},
		"labels of a Deployment": {"apps", "deployments",
			`{"metadata":{"annotations":{"a":"b"}},"spec":{"size":1}}`, false},
		"labels of an EndpointSlice": {"discovery.k8s.io", "endpointslices",
			`{"metadata":{"labels":{"a":"c"},"annotations":{"a":"b"}},"spec":{"size":1}}`, true},
		"annotations of an EndpointSlice": {"discovery.k8s.io", "endpointslices",
			`{"metadata":{"labels":{"a":"b"}},"spec":{"size":1}}`, false},
		"annotations of a ReplicaSet": {"apps", "replicasets", `{"metadata":{},"spec":{"size":1}}`, false},
	} {
		if got := isChange(parsed(t, c.object), parsed(t, stored).Root(),
			&resource.Info{Group: c.group, Resource: c.plural}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestHideToken: no policy sees a token that a dry run of a TokenRequest has made.
func TestHideToken(t *testing.T) {
	const made = `{"kind":"TokenRequest","spec":{"audiences":["a"]},"status":{"token":"secret","expirationTimestamp":"2026-01-01T00:00:00Z"}}`
	for plural, want := range map[string]string{
		"serviceaccounts": `{"kind":"TokenRequest","spec":{"audiences":["a"]},"status":{"token":"","expirationTimestamp":null}}`,
		"others":          made,
	} {
		w := &storage.Write{Subject: storage.Subject{Info: resource.Info{Resource: plural, Subresource: "token"}},
			Result: parsed(t, made)}
		hideToken(w)
		if got := string(w.Result.AppendTo(nil)); got != want {
			t.Errorf("%s: %s, want %s", plural, got, want)
		}
	}
}
