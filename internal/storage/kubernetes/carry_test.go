package kubernetes

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

func parsed(t *testing.T, text string) *document.Document {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCarry: validating policies see a PUT with the fields that the server carries over, and what is sent is the
// client's.
func TestCarry(t *testing.T) {
	const stored = `{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n","uid":"u","resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z",` +
		`"deletionTimestamp":"2026-02-01T00:00:00Z","deletionGracePeriodSeconds":30,"managedFields":[{"manager":"m"}],"labels":{"a":"b"}},"spec":{"size":1},"status":{"ready":true}}`
	const system = `"uid":"u","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-02-01T00:00:00Z","deletionGracePeriodSeconds":30,"managedFields":[{"manager":"m"}]`
	described := &resource.Resource{Subresources: resource.Subresources{Status: true}}
	for name, c := range map[string]struct {
		resource     *resource.Resource
		group        string
		isStatus     bool
		stored, sent string
		want         string
	}{
		"unchanged, as kubectl shows it": {described, "a.b", false, stored,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n","uid":"u","resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-02-01T00:00:00Z","deletionGracePeriodSeconds":30,"labels":{"a":"b"}},"spec":{"size":1}}`,
			stored},
		"unchanged, as it was written": {described, "a.b", false, stored,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n","resourceVersion":"7","labels":{"a":"b"}},"spec":{"size":1}}`, stored},
		"a change": {described, "a.b", false, stored,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n","generation":9,"creationTimestamp":"2020-01-01T00:00:00Z","deletionTimestamp":null},"spec":{"size":2}}`,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n","generation":4,"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-02-01T00:00:00Z","uid":"u","deletionGracePeriodSeconds":30,"managedFields":[{"manager":"m"}]},"spec":{"size":2},"status":{"ready":true}}`},
		"a change of metadata alone": {described, "a.b", false, stored,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n"},"spec":{"size":1}}`,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n",` + system +
				`},"spec":{"size":1},"status":{"ready":true}}`},
		"managed fields that are sent": {described, "a.b", false, stored, `{"apiVersion":"a.b/v1","kind":"K","metadata":{"managedFields":[{"manager":"x"}]},"spec":{"size":1}}`,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"managedFields":[{"manager":"x"}],"uid":"u","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-02-01T00:00:00Z","deletionGracePeriodSeconds":30},"spec":{"size":1},"status":{"ready":true}}`},
		"no status subresource": {&resource.Resource{}, "a.b", false, stored,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{},"spec":{"size":1}}`,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"uid":"u","generation":4,"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-02-01T00:00:00Z","deletionGracePeriodSeconds":30,"managedFields":[{"manager":"m"}]},"spec":{"size":1}}`},
		"a kind of Kubernetes itself": {nil, "apps", false, stored,
			`{"metadata":{"name":"n"},"spec":{"size":1},"status":{"ready":false}}`,
			`{"metadata":{"name":"n",` + system +
				`},"spec":{"size":1},"status":{"ready":true},"apiVersion":"a.b/v1","kind":"K"}`},
		"a kind that has no generation": {nil, "", false, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","uid":"u"},"data":{"a":"b"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"a":"c"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","uid":"u"},"data":{"a":"c"}}`},
		"a status": {described, "a.b", true, stored, `{"apiVersion":"a.b/v1","kind":"K","metadata":{"labels":{"x":"y"}},"spec":{"size":5},"status":{"ready":false}}`,
			`{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n","uid":"u","resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z",` +
				`"deletionTimestamp":"2026-02-01T00:00:00Z","deletionGracePeriodSeconds":30,"managedFields":[{"manager":"m"}],"labels":{"a":"b"}},"spec":{"size":1},"status":{"ready":false}}`},
		"a status of Kubernetes itself": {nil, "apps", true, stored,
			`{"metadata":{"name":"n","annotations":{"x":"y"}},"status":{"ready":false}}`,
			`{"metadata":{"name":"n","annotations":{"x":"y"},` + system +
				`},"status":{"ready":false},"apiVersion":"a.b/v1","kind":"K"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{Options: Options{Resource: c.resource}}
			if c.resource != nil {
				s.Status = storage.StatusPath(c.resource)
			}
			w := &storage.Write{Exchanges: &storage.Exchanges{}, Body: storage.Body{Object: parsed(t, c.sent)},
				Existing: storage.Existing{Object: parsed(t, c.stored)}}
			w.Info.Group = c.group
			if c.isStatus {
				s.carryStatus(w)
			} else {
				s.carry(w)
			}
			want := parsed(t, c.want)
			if !document.EqualNodes(w.Admitted().Root(), want.Root()) {
				t.Errorf("policies see\n%s\nwant\n%s", w.Admitted().AppendTo(nil), c.want)
			}
			if got := w.Object.AppendTo(nil); w.Object.Edited() || string(got) != c.sent {
				t.Errorf("%s is sent, want %s", got, c.sent)
			}
		})
	}
}

// TestCarryScale: validating policies see a Scale that is put as the server makes it of the object that it scales.
func TestCarryScale(t *testing.T) {
	const (
		stored = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"n","namespace":"a","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":1},"status":{"replicas":1,"selector":"a=b"}}`
		sent   = `{"metadata":{"name":"n"},"spec":{"replicas":2},"status":{"replicas":9}}`
		want   = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"n","namespace":"a","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":2},"status":{"replicas":1,"selector":"a=b"}}`
	)
	w := &storage.Write{Exchanges: &storage.Exchanges{}, Body: storage.Body{Object: parsed(t, sent)},
		Existing: storage.Existing{Object: parsed(t, stored)}}
	w.Info = resource.Info{IsResource: true, Verb: resource.VerbUpdate, APIPrefix: "apis", Group: "apps",
		Resource: "deployments", Subresource: "scale", Namespace: "a", Name: "n"}
	carryScale(w)
	if !document.EqualNodes(w.Admitted().Root(), parsed(t, want).Root()) {
		t.Errorf("policies see\n%s\nwant\n%s", w.Admitted().AppendTo(nil), want)
	}
	if got := string(w.Object.AppendTo(nil)); got != sent {
		t.Errorf("%s is sent, want %s", got, sent)
	}
}

// TestOwnGroups: the groups of Kubernetes itself are those that its own clients have.
func TestOwnGroups(t *testing.T) {
	groups := map[string]bool{apiextensionsv1.GroupName: true, "apiregistration.k8s.io": true}
	for _, v := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if v.Group == "imagepolicy.k8s.io" || v.Group == "meta.k8s.io" || v.Group == "__internal" {
			continue // of no resource
		}
		groups[v.Group] = true
		if !isOwnGroup(v.Group) {
			t.Errorf("'%s' must be one of Kubernetes' own", v.Group)
		}
	}
	for _, group := range []string{"gateway.networking.k8s.io", "metrics.k8s.io", "a.b", "apps.example.com"} {
		if isOwnGroup(group) || groups[group] {
			t.Errorf("'%s' must not be one of Kubernetes' own", group)
		}
	}
}
