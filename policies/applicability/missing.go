package applicability

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// references finds files that a PolicyTest names and that are not there: it could not be played.
func (r *reviewer) references(o *manifest.Object) {
	if _, err := os.Stat(o.File); o.Kind != "PolicyTest" || err != nil {
		return // what is not read from a file is beside no other
	}
	t, ok := decode[testcase.Test](o)
	if !ok {
		return
	}
	for i, name := range t.Spec.Policies {
		if !isBeside(o, name) {
			r.found(o, missingFile, fmt.Sprintf("spec.policies[%d]", i), "no file or folder beside the test has the name '%s', so that it cannot be played", name)
		}
	}
	for i := range t.Spec.Cases {
		if name := t.Spec.Cases[i].Expect.ObjectFile; name != "" && !isBeside(o, name) {
			r.found(o, missingFile, fmt.Sprintf("spec.cases[%d].expect.objectFile", i),
				"no file beside the test has the name '%s': 'gateway test --update' writes it", name)
		}
	}
}

// isBeside reports whether there is a file or folder of a name that is relative to the file of an object.
func isBeside(o *manifest.Object, name string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(o.File), name))
	return err == nil
}
