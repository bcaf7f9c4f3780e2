package admission

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/resource"
)

// TestRequestNamespace: a Namespace that is created is its own namespace, if the client says its name.
func TestRequestNamespace(t *testing.T) {
	namespaces := resource.Info{APIPrefix: "api", Version: "v1", Resource: "namespaces", Verb: resource.VerbCreate,
		Name: "a"}
	updated := namespaces
	updated.Verb = resource.VerbUpdate
	for name, c := range map[string]struct {
		a    Attributes
		want string
	}{
		"named":     {Attributes{Info: &namespaces}, "a"},
		"generated": {Attributes{Info: &namespaces, HasGeneratedName: true}, ""},
		"updated":   {Attributes{Info: &updated}, ""},
		"what is in it": {Attributes{Info: &resource.Info{APIPrefix: "api", Version: "v1", Resource: "pods",
			Namespace: "b", Verb: resource.VerbCreate}}, "b"},
	} {
		if got := c.a.RequestNamespace(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
