package scan

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/pages/pagestest"
)

// TestHTML: the page of a report with all that one can have, and of one with nothing, shows every value as text.
func TestHTML(t *testing.T) {
	full := Report{}
	pagestest.Fill(&full)
	full.Changes = map[string]int64{Refused: 1, Accepted: 2, Added: 3, Removed: 4, Reworded: 5, Edited: 6}
	for name, r := range map[string]*Report{"full.html": &full, "empty.html": {Tally: newTally()}} {
		var page strings.Builder
		if err := r.Write(&page, "html"); err != nil {
			t.Fatal(err)
		}
		pagestest.Same(t, page.String(), name)
	}
}
