package ratelimit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// kubernetesDrops is the rule of k8s.io/apiserver/pkg/util/flowcontrol/dropped_requests_tracker.go,
// which exports nothing that takes a clock, written with a list of all drops instead of its
// counters: retryAfter begins at 1. The first drop of a second counts those in the retryAfter
// seconds before it. Three times as many double it, at most to 32, unless it was doubled less than
// retryAfter seconds ago; fewer than retryAfter take one away.
type kubernetesDrops struct {
	retryAfter, doubled int64
	seconds             []int64
}

func (k *kubernetesDrops) add(second int64) int64 {
	k.retryAfter = max(k.retryAfter, 1)
	if !slices.Contains(k.seconds, second) {
		dropped := int64(0)
		for _, s := range k.seconds {
			if second-s <= k.retryAfter {
				dropped++
			}
		}
		switch {
		case second-k.doubled >= k.retryAfter && dropped >= 3*k.retryAfter:
			k.retryAfter, k.doubled = min(2*k.retryAfter, 32), second
		case dropped < k.retryAfter && k.retryAfter > 1:
			k.retryAfter--
		}
	}
	k.seconds = append(k.seconds, second)
	return k.retryAfter
}

// ERR-3: the waits of clients that are turned away are Kubernetes', whatever the history of drops
// is.
func TestDropsAsKubernetes(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		at := time.Unix(1_800_000_000, 0)
		var theirs kubernetesDrops
		var ours Drops
		most := 0
		for step := range 2000 {
			// Spikes, trickles and pauses.
			switch random.IntN(40) {
			case 0:
				at = at.Add(time.Duration(random.IntN(40)) * time.Second)
			case 1, 2, 3:
				at = at.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
			default:
				at = at.Add(time.Duration(random.IntN(50*int(1+seed%8))) * time.Millisecond)
			}
			got, want := ours.Add(at), int(theirs.add(at.Unix()))
			if got != want {
				t.Fatalf("seed %d, drop %d: %d seconds, want %d", seed, step, got, want)
			}
			most = max(most, got)
		}
		if most == 1 {
			t.Errorf("seed %d: the wait never grew", seed)
		}
	}
}

// While drops go on the wait doubles up to 32 seconds, and goes down again by one for each second with few.
func TestDropsGrowAndShrink(t *testing.T) {
	var d Drops
	at := time.Unix(1_800_000_000, 0)
	var got []int
	for range 64 {
		for range 200 {
			d.Add(at)
		}
		if wait := d.Add(at); len(got) == 0 || got[len(got)-1] != wait {
			got = append(got, wait)
		}
		at = at.Add(time.Second)
	}
	if want := []int{1, 2, 4, 8, 16, 32}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	at = at.Add(time.Hour)
	for want := 31; want > 0; want-- {
		if wait := d.Add(at); wait != want {
			t.Fatalf("got %d, want %d", wait, want)
		}
		at = at.Add(time.Minute)
	}
}
