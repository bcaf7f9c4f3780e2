package scan

import (
	"sync"
)

// A position is a place in what the sources have.
type position struct {
	Source string `json:"source"`
	// Continue is the token of the page, if the source has pages, and Last names the object before it.
	Continue string `json:"continue,omitempty"`
	Last     string `json:"last,omitempty"`
	// Done is how many items of the page, or of the source, were judged.
	Done int64 `json:"done"`
}

// notes give a reader of the report more than the findings.
type notes struct {
	mu  sync.Mutex
	all []string
}

// maxNotes is how many notes there are at most.
const maxNotes = 100

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.all) < maxNotes {
		n.all = append(n.all, text)
	}
}
