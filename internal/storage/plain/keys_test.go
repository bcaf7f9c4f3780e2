package plain

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

// TestKubernetesMaps compares the table with the types that an API server reads objects into: no
// object of Kubernetes' own that has both keys is refused.
func TestKubernetesMaps(t *testing.T) {
	seen := map[reflect.Type]bool{}
	found := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(r reflect.Type) {
		for r.Kind() == reflect.Pointer || r.Kind() == reflect.Slice {
			r = r.Elem()
		}
		if r.Kind() == reflect.Map {
			walk(r.Elem())
		}
		if r.Kind() != reflect.Struct || seen[r] {
			return
		}
		seen[r] = true
		for i := range r.NumField() {
			f := r.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Map && name != "" && name != "-" {
				found[name] = true
			}
			walk(f.Type)
		}
	}
	for _, r := range scheme.Scheme.AllKnownTypes() {
		walk(r)
	}
	if len(found) < 20 {
		t.Fatalf("found %v", found)
	}
	var missing []string
	for name := range found {
		if !kubernetesMaps[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("must be in the table: \"%s\"", strings.Join(missing, `": true, "`))
	}
}
