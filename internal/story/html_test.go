package story_test

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/pages/pagestest"
	"github.com/admission-gateway/gateway/internal/story"
)

// TestHTML: the page of a story with all that one can have, and of one with nothing, shows every value as text.
func TestHTML(t *testing.T) {
	full := story.Story{}
	pagestest.Fill(&full)
	for name, s := range map[string]*story.Story{"full.html": &full, "empty.html": {}} {
		var page strings.Builder
		if err := story.WriteHTML(&page, s); err != nil {
			t.Fatal(err)
		}
		pagestest.Same(t, page.String(), name)
	}
}
