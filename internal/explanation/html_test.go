package explanation_test

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/pages/pagestest"
)

// TestHTML: the page of an explanation with all that one can have, and of one with nothing, shows every value as text.
func TestHTML(t *testing.T) {
	full := explanation.Explanation{}
	pagestest.Fill(&full)
	for name, s := range map[string]*explanation.Explanation{"full.html": &full, "empty.html": {}} {
		var page strings.Builder
		if err := explanation.WriteHTML(&page, s); err != nil {
			t.Fatal(err)
		}
		pagestest.Same(t, page.String(), name)
	}
}
