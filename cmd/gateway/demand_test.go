package main

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The sender does not wait for the call, and what is asked while it goes on happens once more after
// it.
func TestOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, running atomic.Int64
		demands := onDemand(func() {
			if running.Add(1) != 1 {
				t.Error("two calls at a time")
			}
			time.Sleep(time.Hour)
			running.Add(-1)
			calls.Add(1)
		})
		began := time.Now()
		ask(demands)
		synctest.Wait()
		for range 3 {
			ask(demands)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("who asked waited for %s", waited)
		}
		time.Sleep(24 * time.Hour)
		if got := calls.Load(); got != 2 {
			t.Errorf("%d calls, want 2", got)
		}
		close(demands)
	})
}
