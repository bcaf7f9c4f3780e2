package policies

import (
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/internal/resource"
)

// TestVerbsOfDefinitions compares the lists of verbs and methods in the definitions of our own kinds
// with the table of verbs.
func TestVerbsOfDefinitions(t *testing.T) {
	all, err := JSONSchemas()
	if err != nil {
		t.Fatal(err)
	}
	verbs := []any{"*"}
	var methods, written []any
	for v := range resource.Verbs {
		verbs = append(verbs, v.String())
		if m := any(v.Method()); v.OfResource() && !slices.Contains(methods, m) {
			methods = append(methods, m)
		}
		if m := any(v.Method()); v.Operation() != 0 && !slices.Contains(written, m) {
			written = append(written, m)
		}
	}
	lists := 0
	var look func(kind, at string, of any)
	look = func(kind, at string, of any) {
		switch of := of.(type) {
		case map[string]any:
			if list, ok := of["enum"].([]any); ok {
				var want []any
				switch {
				case slices.Contains(list, any("deletecollection")):
					want = verbs
				case slices.Contains(list, any("PATCH")) && slices.Contains(list, any("GET")):
					want = methods
				case slices.Contains(list, any("PATCH")):
					want = written
				}
				if want != nil {
					lists++
					if !slices.Equal(list, want) {
						t.Errorf("%s: %s is %v, and the table of verbs has %v", kind, at, list, want)
					}
				}
			}
			for name, member := range of {
				look(kind, at+"."+name, member)
			}
		case []any:
			for _, item := range of {
				look(kind, at+"[]", item)
			}
		}
	}
	for kind, s := range all {
		look(kind, "", s)
	}
	if lists < 3 {
		t.Errorf("%d lists of verbs and methods were found, want those of RateLimitPolicy, APIResource and PolicyTest", lists)
	}
}
