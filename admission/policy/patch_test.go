package policy

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
)

// TestPatchLeavesObject: what a patch made of an object is named with its article.
func TestPatchLeavesObject(t *testing.T) {
	for raw, want := range map[string]string{
		`[1]`: "a list", `1`: "a number", `"x"`: "a string", `true`: "a boolean", `null`: "null",
	} {
		d, err := document.Parse([]byte(raw), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		want = "Internal error occurred: a JSON patch of a policy must leave an object, not " + want
		if got := (typeMeta{}).check(d.Root()).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		d.Release()
	}
}
