// Package policiestest compiles policy files for tests.
package policiestest

import (
	"fmt"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

// Load compiles policy files that are given as text. They must have no errors.
func Load(t testing.TB, texts ...string) *policies.Set {
	t.Helper()
	return LoadFiles(t, Write(t, texts...))
}

// LoadFiles compiles the policy files at the paths. They must have no errors.
func LoadFiles(t testing.TB, paths ...string) *policies.Set {
	t.Helper()
	set, findings := policies.Load(paths)
	if set == nil {
		t.Fatalf("the policies do not compile: %v", findings)
	}
	return set
}

// Write writes policy files into a new folder, and returns the folder. Their names are 1.yaml,
// 2.yaml and so on. An empty text makes no file.
func Write(t testing.TB, texts ...string) string {
	t.Helper()
	files := map[string]string{}
	for i, text := range texts {
		if text != "" {
			files[fmt.Sprintf("%d.yaml", i+1)] = text
		}
	}
	return testutil.WriteFiles(t, files)
}
