package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestFilesWithinMemory: files that would take more memory than there is are refused one by one, and what was asked for is
// given back.
func TestFilesWithinMemory(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, test := range []struct {
		name string
		file source.File
		want string
	}{
		{"small", source.File{Name: "a.yaml", Data: []byte(head)}, ""},
		{"a flow list", source.File{Name: "a.yaml", Data: []byte(head + "data: [" + strings.Repeat("a,", 100_000) + "a]\n")},
			"a.yaml: takes more memory to read, about 39603054 bytes, than is left of `limits.bodiesInFlightBytes`: split it, or give the gateway more memory"},
		{"many small objects", source.File{Name: "a.yaml", Data: []byte(strings.Repeat(head+"---\n", 2000))}, "takes more memory than is left of `limits.bodiesInFlightBytes`"},
		{"a module", source.File{Name: "a/b.rego", Role: source.Module, Data: []byte("package a\nx := [" + strings.Repeat("1,", 10_000) + "1]\n")}, "a/b.rego: takes more memory to read"},
		{"data", source.File{Name: "a/data.json", Role: source.Data, Data: []byte(`{"a": [` + strings.Repeat("1,", 100_000) + "1]}")}, "a/data.json: takes more memory to read"},
	} {
		budget := memory.NewBudget(8<<20, 1)
		_, found := CompileFor(source.Of([]source.File{test.file}), Gateway{Memory: budget})
		refused := ""
		for _, f := range found {
			if f.Severity == Error && (refused == "" || strings.Contains(f.String(), test.want)) {
				refused = f.String()
			}
		}
		if (test.want == "") != (refused == "") || !strings.Contains(refused, test.want) {
			t.Errorf("%s: found %q, want %q", test.name, refused, test.want)
		}
		if budget.InUse() != 0 {
			t.Errorf("%s: %d bytes are not given back", test.name, budget.InUse())
		}
	}
}
