package ratelimit

import (
	"container/list"
	"sync"
)

// slotTable bounds how many requests are in flight. Its memory is bounded by the
// requests that are served or wait: a key without any takes none.
type slotTable struct {
	mu      sync.Mutex
	rules   map[uint64]*ruleSlots
	free    []*keySlots // of keys that have none any more
	waiting int
}

// ruleSlots holds the requests that are served or wait under one rule.
type ruleSlots struct {
	bounds InFlight
	served int
	keys   map[uint64]*keySlots // by the hash of the key
	// ready are the keys with a request that waits for nothing but a slot among all keys. Each gets one in its turn, so
	// that a key with many requests does not keep the requests of others waiting.
	ready list.List
	drops Drops
}

// keySlots holds the requests of one key that are served or wait.
type keySlots struct {
	key     uint64
	served  int
	waiting list.List     // of the requests, as channels that are closed when their turn has come
	turn    *list.Element // in ready; nil if it is not there
}

// maxIdleRules is how many rules are known before those without requests in flight are forgotten.
const maxIdleRules = 1024

// maxFreeKeys is how many keySlots are kept for other keys.
const maxFreeKeys = 4096

// ruleOf returns what is known of a rule, whose bounds may be new.
func (t *slotTable) ruleOf(rule *compiled) *ruleSlots {
	r := t.rules[rule.slotsID]
	if r == nil {
		if len(t.rules) >= maxIdleRules {
			for id, other := range t.rules {
				if len(other.keys) == 0 {
					delete(t.rules, id)
				}
			}
		}
		r = &ruleSlots{keys: map[uint64]*keySlots{}}
		if t.rules == nil {
			t.rules = map[uint64]*ruleSlots{}
		}
		t.rules[rule.slotsID] = r
	}
	if r.bounds != rule.limit.InFlight {
		r.bounds = rule.limit.InFlight
		for _, k := range r.keys {
			r.queue(k)
		}
		r.dispatch()
	}
	return r
}

// keyOf returns the slots of a key.
func (t *slotTable) keyOf(r *ruleSlots, key uint64) *keySlots {
	k := r.keys[key]
	if k != nil {
		return k
	}
	if n := len(t.free); n > 0 {
		k, t.free = t.free[n-1], t.free[:n-1]
	} else {
		k = &keySlots{}
	}
	k.key = key
	r.keys[key] = k
	return k
}

// forget gives the memory of a key back that has no requests.
func (t *slotTable) forget(r *ruleSlots, k *keySlots) {
	if k.served > 0 || k.waiting.Len() > 0 {
		return
	}
	delete(r.keys, k.key)
	if len(t.free) < maxFreeKeys {
		t.free = append(t.free, k)
	}
}

// has reports whether one more may be served, among all keys and of this one.
func (r *ruleSlots) has() bool { return r.bounds.Total == 0 || r.served < r.bounds.Total }
func (r *ruleSlots) hasFor(k *keySlots) bool {
	return r.bounds.PerKey == 0 || k.served < r.bounds.PerKey
}

// crowd says whose requests leave no slot for one more of the key.
func (r *ruleSlots) crowd(k *keySlots) SlotState {
	switch {
	case !r.hasFor(k):
		return KeySlotsTaken
	case !r.has():
		return AllSlotsTaken
	}
	return SlotFree
}

func (r *ruleSlots) serve(k *keySlots) {
	r.served++
	k.served++
}

// queue puts a key with a waiting request into the order of turns, if the key has room.
func (r *ruleSlots) queue(k *keySlots) {
	if k.turn == nil && k.waiting.Len() > 0 && r.hasFor(k) {
		k.turn = r.ready.PushBack(k)
	}
}

// dispatch lets waiting requests in, one of each key after the other.
func (r *ruleSlots) dispatch() {
	for r.has() && r.ready.Len() > 0 {
		k := r.ready.Remove(r.ready.Front()).(*keySlots)
		k.turn = nil
		if !r.hasFor(k) || k.waiting.Len() == 0 {
			continue
		}
		r.serve(k)
		close(k.waiting.Remove(k.waiting.Front()).(chan struct{}))
		r.queue(k)
	}
}

// leave ends the serving of one request of a key.
func (t *slotTable) leave(r *ruleSlots, k *keySlots) {
	r.served--
	k.served--
	r.queue(k)
	r.dispatch()
	t.forget(r, k)
}
