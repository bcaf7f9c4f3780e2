package memory

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/presence"
)

func open(b *Budget) *Reservation {
	a := new(Reservation)
	a.Open(b, nil)
	return a
}

// TestAllowance: what little a request takes is not counted.
func TestAllowance(t *testing.T) {
	b := NewBudget(0, 1)
	a := open(b)
	if !a.Grow(Allowance) || b.InUse() != 0 || a.Refusal() != None {
		t.Errorf("%d bytes are counted, %v", b.InUse(), a.Refusal())
	}
	if a.Grow(1) || a.Refusal() != Full {
		t.Error("more is granted than there is")
	}
	a.Close()
	if a.Refusal() != None || !a.Grow(Allowance) {
		t.Error("the next request is refused what the one before it was")
	}
}

// TestGrow: memory is reserved in steps, refused beyond the limit, and given back.
func TestGrow(t *testing.T) {
	b := NewBudget(10*step, 1)
	a := open(b)
	for _, c := range []struct {
		n       int // to grow by, or to shrink by
		granted bool
		inUse   int64
	}{
		{Allowance + 1, true, step},
		{step - 1, true, step},
		{1, true, 2 * step},
		{-step, true, step},
		{8 * step, true, 9 * step},
		{2 * step, false, 9 * step},
		{step, true, 10 * step}, // exactly what there is
		{-10*step - Allowance, true, 0},
	} {
		granted := true
		if c.n < 0 {
			a.Shrink(-c.n)
		} else {
			granted = a.Grow(c.n)
		}
		if granted != c.granted || b.InUse() != c.inUse {
			t.Errorf("%d: granted %v, %d are in use, want %v and %d", c.n, granted, b.InUse(), c.granted, c.inUse)
		}
	}
	if b.Peak() != 10*step {
		t.Errorf("%d were in use at most", b.Peak())
	}
}

// TestLargeLeaveRoomForSmall: large requests cannot take what is kept for small ones.
func TestLargeLeaveRoomForSmall(t *testing.T) {
	b := NewBudget(16<<20, 1)
	large := open(b)
	for large.Grow(1 << 20) {
	}
	if b.InUse() > LargeShare(16<<20) || b.InUse() < LargeShare(16<<20)-2<<20 {
		t.Errorf("large requests take %d", b.InUse())
	}
	for i := range 3 {
		if small := open(b); !small.Grow(512 << 10) {
			t.Errorf("the small request %d is refused: %d are in use", i, b.InUse())
		}
	}
}

// TestCommit: once a request is done with what it was for, it gets what little its answer takes, and goes on.
func TestCommit(t *testing.T) {
	b := NewBudget(step, 1)
	a := open(b)
	a.Commit()
	if !a.Grow(Allowance+step) || !a.Grow(overdraft) || a.Grow(overdraft+1) || a.Refusal() != None {
		t.Errorf("used %d, refused: %v", a.Used(), a.Refusal())
	}
	if b.InUse() > step {
		t.Errorf("%d are in use", b.InUse())
	}
	if a.Close(); b.InUse() != 0 {
		t.Errorf("%d are not given back", b.InUse())
	}
}

// TestBudgetIsNeverExceeded: whatever requests do at a time, no more is taken than there is, and all comes back.
func TestBudgetIsNeverExceeded(t *testing.T) {
	b := NewBudget(32<<20, 2)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			a := open(b)
			for range 20_000 {
				switch random.IntN(8) {
				case 0:
					a.Close()
				case 1:
					a.Keep(random.IntN(1 << 20))
				case 2:
					a.Commit()
				case 3:
					a.Reopen()
				case 4, 5:
					a.Shrink(random.IntN(1 << 20))
				default:
					a.Grow(random.IntN(1 << random.IntN(23)))
				}
				if used := b.InUse(); used < 0 || used > b.Limit() {
					t.Errorf("%d are in use of %d", used, b.Limit())
					return
				}
			}
			a.Close()
		})
	}
	wg.Wait()
	if b.InUse() != 0 || b.Peak() > b.Limit() {
		t.Errorf("%d are in use in the end, %d were at most", b.InUse(), b.Peak())
	}
}

func TestNilReservationGrantsAll(t *testing.T) {
	var a *Reservation
	if !a.Grow(1<<40) || !a.Work() || !new(Reservation).Grow(1<<40) || !new(Reservation).Work() {
		t.Error("refused")
	}
	a.Shrink(1)
}

// gone returns a client that has left.
func gone() *presence.Client {
	c := new(presence.Client)
	c.Leave()
	return c
}

// TestGate: few work at a time, the others in the order in which they came; too many, and any that
// wait for too long, or whose client is gone, are refused.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1<<30, 1)
		first := open(b)
		if !first.Work() {
			t.Fatal("nobody works")
		}
		var mu sync.Mutex
		var order []int
		reservations := make([]*Reservation, maxWaiting)
		for i := range reservations {
			a := open(b)
			reservations[i] = a
			go func() {
				if a.Work() {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					time.Sleep(time.Second)
					a.Rest()
				}
			}()
			synctest.Wait()
		}
		if working, waiting := b.Working(); working != 1 || waiting != maxWaiting {
			t.Errorf("%d work, %d wait", working, waiting)
		}
		if a := open(b); a.Work() || a.Refusal() != Busy {
			t.Errorf("one more: %v", a.Refusal())
		}
		start := time.Now()
		first.Rest()
		synctest.Wait()
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		mu.Lock()
		if len(order) != 4 || order[0] != 0 || order[1] != 1 || order[2] != 2 || order[3] != 3 {
			t.Errorf("worked in the order %v", order)
		}
		mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		refused := 0
		for _, a := range reservations {
			if a.Refusal() == Busy {
				refused++
			}
		}
		// The ten seconds end for all at once: ten or eleven had their turn.
		if done := len(order); done < 10 || done > 11 || refused != maxWaiting-done {
			t.Errorf("%d worked, %d waited in vain, after %v", done, refused, time.Since(start))
		}
		if working, waiting := b.Working(); working != 0 || waiting != 0 {
			t.Errorf("%d work, %d wait", working, waiting)
		}
	})
}

// TestGateEndsWithTheRequest: who waits is not worked for any more.
func TestGateEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1<<30, 1)
		first := open(b)
		first.Work()
		late := open(b)
		late.SetDeadline(time.Now().Add(time.Second))
		start := time.Now()
		if late.Work() || late.Refusal() != Over || time.Since(start) != time.Second {
			t.Errorf("after its deadline: %v, %v", late.Refusal(), time.Since(start))
		}
		left := new(Reservation)
		left.Open(b, gone())
		if left.Work() || left.Refusal() != Over {
			t.Errorf("without its client: %v", left.Refusal())
		}
		leaving := new(Reservation)
		waiter := new(presence.Client)
		leaving.Open(b, waiter)
		time.AfterFunc(time.Second, waiter.Leave)
		start = time.Now()
		if leaving.Work() || leaving.Refusal() != Over || time.Since(start) != time.Second {
			t.Errorf("a client that leaves while it waits: %v after %v", leaving.Refusal(), time.Since(start))
		}
		first.client = gone()
		if first.Work() || first.Refusal() != Over {
			t.Errorf("a client that leaves while it is worked for: %v", first.Refusal())
		}
		done := open(b)
		done.Commit()
		if done.Resume() != true {
			t.Error("what is done waits")
		}
	})
}

// TestResume: who rested waits again if it did heavy work before, and does not if it did none.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1<<30, 1)
		heavy, light, other := open(b), open(b), open(b)
		heavy.Work()
		heavy.Rest()
		other.Work()
		if !light.Resume() {
			t.Error("light work waits")
		}
		if heavy.Resume() || heavy.Refusal() != Busy {
			t.Error("heavy work goes on beside other")
		}
		other.Close()
		if again := open(b); !again.Work() {
			t.Error("a request that ended keeps its place")
		}
	})
}

// TestGroupLimit: the lowest limit counts, of either version and of all groups around.
func TestGroupLimit(t *testing.T) {
	for _, c := range []struct {
		name, groups string
		files        map[string]string
		want         int64
	}{
		{"version 2, in a container", "0::/\n", map[string]string{"memory.max": "268435456\n"}, 256 << 20},
		{"version 2, no limit", "0::/a\n", map[string]string{"memory.max": "max\n", "a/memory.max": "max\n"}, 0},
		{"version 2, a group around", "0::/a/b\n",
			map[string]string{"a/memory.max": "1000\n", "a/b/memory.max": "2000\n"}, 1000},
		{"version 2, the host's path in a container", "0::/kubepods/pod1/c\n",
			map[string]string{"memory.max": "1000\n"}, 1000},
		{"version 1", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n",
			map[string]string{"memory/docker/1/memory.limit_in_bytes": "1000\n"}, 1000},
		{"version 1, no limit", "4:memory:/\n",
			map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"both", "4:memory:/\n0::/\n", map[string]string{"memory/memory.limit_in_bytes": "3000\n",
			"memory.max": "2000\n"}, 2000},
		{"nonsense", "what\n0::/\n", map[string]string{"memory.max": "much\n"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			groups, root := filepath.Join(dir, "cgroup"), filepath.Join(dir, "root")
			write(t, groups, c.groups)
			for name, content := range c.files {
				write(t, filepath.Join(root, name), content)
			}
			if got := groupLimit(groups, root); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	if got := groupLimit("/does/not/exist", "/"); got != 0 {
		t.Errorf("without groups: %d", got)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCollectable(t *testing.T) {
	const mebi = 1 << 20
	for container, want := range map[int64]int64{64 * mebi: 48 * mebi, 256 * mebi: 208 * mebi,
		1024 * mebi: 1024*mebi - 1024*mebi/10} {
		if got := Collectable(container); got != want {
			t.Errorf("of %d: %d, want %d", container, got, want)
		}
	}
}

// TestFailedSendsNothing: what has failed keeps a request from sending more, whether its write is done or not, until it
// is over.
func TestFailedSendsNothing(t *testing.T) {
	var a Reservation
	a.Open(NewBudget(1<<20, 1), nil)
	if a.Commit(); !a.MaySend() {
		t.Error("a committed request may not send")
	}
	if a.Fail(); a.MaySend() || a.Refusal() != None {
		t.Errorf("after a failure it may send: %t, refused %d", a.MaySend(), a.Refusal())
	}
	if a.Reopen(); a.MaySend() {
		t.Error("it may send again after it was reopened")
	}
	if a.Close(); !a.MaySend() {
		t.Error("the next request may not send")
	}
	var none *Reservation
	none.Fail()
}
