package policies

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/resource"
)

// undescribed says what is known of a resource that no file describes.
type undescribed struct{ set *Set }

func (u undescribed) SetDefaults() error { return nil }

func (u undescribed) MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
	return u.set.MergeType(as, kind)
}

func (u undescribed) PatchLimits() document.Limits { return document.Limits{} }

// TestLibraryOfDefaults: what the ready-made DefaultingPolicies set, and that they set nothing twice (DEF-5, DEF-6).
func TestLibraryOfDefaults(t *testing.T) {
	set, found := Load([]string{"library/defaulting"})
	if set == nil || len(found) > 0 {
		t.Fatal(found)
	}
	class := func(name, annotations string) document.Node {
		return admissiontest.Parse("{kind: StorageClass, metadata: {name: " + name + annotations + "}}").Root()
	}
	lookup := (&admissiontest.Lookup{Known: map[string][]document.Node{"storageclasses": {
		class("slow", ""), class("fast", ", annotations: {storageclass.kubernetes.io/is-default-class: 'true'}"),
	}}}).Add("{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {team: a}}}").Add(
		"{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}")
	for _, c := range []struct{ resource, namespace, object, want string }{
		{"persistentvolumeclaims", "team-a", `{"kind":"PersistentVolumeClaim","spec":{}}`,
			`{"kind":"PersistentVolumeClaim","spec":{"storageClassName":"fast"}}`},
		{"persistentvolumeclaims", "team-a", `{"kind":"PersistentVolumeClaim","spec":{"storageClassName":""}}`,
			`{"kind":"PersistentVolumeClaim","spec":{"storageClassName":""}}`},
		{
			"deployments", "team-a", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"spec":{"containers":[{"name":"a","image":"a:latest"},{"name":"b","image":"b:1","resources":{"requests":{"memory":"1Gi"}}}]}}}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app.kubernetes.io/managed-by":"platform","team":"a"}},"spec":{"template":{"spec":{"containers":[{"name":"a","image":"a:latest","imagePullPolicy":"Always","resources":{"requests":{"memory":"128Mi"}}},` +
				`{"name":"b","image":"b:1","resources":{"requests":{"memory":"1Gi"}}}],"automountServiceAccountToken":false},"metadata":{"labels":{"team":"a"}}}}}`,
		},
		{"deployments", "kube-system", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`},
	} {
		object := c.object
		for range 2 {
			info := &resource.Info{Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1",
				Resource: c.resource, Namespace: c.namespace}
			if c.resource == "deployments" {
				info.APIPrefix, info.Group = "apis", "apps"
			}
			d, err := document.Parse([]byte(object), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			a := &admission.Attributes{
				Info: info, Operation: admission.Create, User: &identity.User{Name: "jane"}, Object: d,
				Lookup: lookup, Frame: cel.NewFrame(context.Background()), Schema: undescribed{set},
			}
			var r admission.Report
			if err := set.Admission().Mutate(context.Background(), a, &r); err != nil || len(r.Denials()) > 0 {
				t.Fatal(err, r.Denials())
			}
			object = string(a.Object.AppendTo(nil))
			a.Frame.Release()
			if object != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", c.object, object, c.want)
			}
		}
	}
}
