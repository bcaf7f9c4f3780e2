package linewriter

import (
	"fmt"
	"sync"
	"time"
)

// slowAfter is how long a write may take before it counts as one that fails.
const slowAfter = 10 * time.Second

// A Fate says how writes fare. The zero value has had none. It is safe for concurrent use.
type Fate struct {
	mu    sync.Mutex
	cause error     // of the last write; nil if it did not fail
	began time.Time // of the write that is under way; zero if none is
}

// Begin notes that a write begins. The cause of the one before stands until a write succeeds.
func (f *Fate) Begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began = time.Now()
}

// End notes how the write ended; nil for a success.
func (f *Fate) End(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began, f.cause = time.Time{}, cause
}

// Failure returns why nothing is written now; nil if all is well.
func (f *Fate) Failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil || f.began.IsZero() {
		return f.cause
	}
	if takes := time.Since(f.began); takes >= slowAfter {
		return fmt.Errorf("a write has taken %d seconds so far", int(takes.Seconds()))
	}
	return nil
}
