package server

import (
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// A blockedTask ends when it is told to.
type blockedTask struct{ begun, end chan struct{} }

func newTask() *blockedTask { return &blockedTask{make(chan struct{}), make(chan struct{})} }

func (t *blockedTask) serve() {
	close(t.begun)
	<-t.end
}

// idleWorkers returns how many goroutines of a pool are idle.
func idleWorkers(c *workerPool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.idle)
}

// TestWorkerPool: work goes to idle goroutines, those that are not needed are dismissed, and so are all in the end.
func TestWorkerPool(t *testing.T) {
	var c workerPool
	together := func(n int) (end func()) {
		all := make([]*blockedTask, n)
		for i := range all {
			all[i] = newTask()
			c.serve(all[i])
		}
		for _, one := range all {
			<-one.begun // none waits for another
		}
		return func() {
			for _, one := range all {
				close(one.end)
			}
		}
	}
	idle := func(n int) {
		t.Helper()
		testutil.Eventually(t, "goroutines to be idle", func() bool { return idleWorkers(&c) == n })
	}
	together(mostIdle + 3)()
	idle(mostIdle)
	end := together(5)
	idle(mostIdle - 5)
	end()
	idle(mostIdle)
	c.dismissSpare() // all have had work since the watch began
	idle(mostIdle)
	end = together(2)
	c.dismissSpare()
	idle(0)
	end()
	idle(2)
	c.dismissSpare()
	c.dismissSpare()
	idle(0)
	end = together(3)
	c.end()
	end()
	together(1)()
	idle(0)
}

// TestWorkerPoolTogether: each piece of work is served once, however callers meet the end.
func TestWorkerPoolTogether(t *testing.T) {
	var c workerPool
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				one := newTask()
				c.serve(one)
				<-one.begun
				close(one.end)
			}
		})
	}
	for range 100 {
		c.dismissSpare()
	}
	group.Wait()
	c.end()
}
