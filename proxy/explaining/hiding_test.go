package explaining

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/cel"
)

// TestIsSecret: the source of a value decides, not the value.
func TestIsSecret(t *testing.T) {
	for _, test := range []struct {
		name   string
		hiding hiding
		reads  cel.Reads
		taken  bool
		want   bool
	}{
		{"nothing", hiding{}, cel.Reads{}, false, false},
		{"parameters that are no Secrets", hiding{}, cel.Reads{Object: true, Old: true, Others: true}, false, false},
		{"parameters that are Secrets", hiding{secret: Secrets{Parameters: true}}, cel.Reads{Others: true}, false,
			true},
		{"a collection of Secrets", hiding{secret: Secrets{Collections: true}}, cel.Reads{Others: true}, false, true},
		{"the object beside such parameters", hiding{secret: Secrets{Parameters: true}},
			cel.Reads{Object: true, Old: true}, false, false},
		{"an object that is a Secret", hiding{object: hidden{isSecret: true}}, cel.Reads{Object: true}, false, true},
		{"a stored object that is a Secret", hiding{object: hidden{isSecret: true}}, cel.Reads{Old: true}, false, true},
		{"other objects beside a Secret", hiding{object: hidden{isSecret: true}}, cel.Reads{Others: true}, false,
			false},
		{"what another policy took from one", hiding{}, cel.Reads{Object: true}, true, true},
	} {
		if got := test.hiding.isSecret(test.reads, test.taken); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}
