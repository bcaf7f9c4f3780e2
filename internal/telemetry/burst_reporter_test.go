package telemetry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSums: all that was added is reported, the first at once and the rest in sum.
func TestSums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		start := time.Now()
		s := NewBurstReporter(func(kind string, sum int, why any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%v: %d of %s: %v", time.Since(start), sum, kind, why))
		})
		full, gone := errors.New("full"), errors.New("gone")
		for range 4250 {
			s.Add("log", 1, full)
		}
		s.Add("webhook", 7, gone)
		time.Sleep(12 * time.Second)
		s.Add("log", 2, gone)
		time.Sleep(time.Minute)
		s.Add("log", 1, full)
		s.Add("log", 3, full)
		s.Close()
		s.Close()
		want := []string{"0s: 1 of log: full", "0s: 7 of webhook: gone", "10s: 4249 of log: full",
			"20s: 2 of log: gone", "1m12s: 1 of log: full", "1m12s: 3 of log: full"}
		if !slices.Equal(told, want) {
			t.Errorf("told:\n%s\nwant:\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
	})
}
