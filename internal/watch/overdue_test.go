package watch

import (
	"testing"
	"testing/synctest"
	"time"
)

// A reading is reported once it has taken longer than a minute, and only then.
func TestOverdue(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		want  bool
	}{{0, false}, {Patience - 1, false}, {Patience + 1, true}, {10 * Patience, true}} {
		synctest.Test(t, func(t *testing.T) {
			began, reports := time.Now(), []time.Duration{}
			done := Overdue(func() { reports = append(reports, time.Since(began)) })
			time.Sleep(c.takes)
			reported := done()
			if reported != c.want || len(reports) > 1 || reported != (len(reports) == 1 && reports[0] == Patience) {
				t.Errorf("what takes %s was reported: %t, after %v", c.takes, reported, reports)
			}
		})
	}
}
