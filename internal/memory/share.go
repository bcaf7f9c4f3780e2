package memory

import "sync"

// shareOf is the part of the budget that one client may hold of answers that it has not taken yet.
const shareOf = 4

// shares count by client what is held of answers that wait for their readers.
type shares struct {
	mu   sync.Mutex
	held map[string]int64 // without those that hold nothing
}

// A Share is what a client holds of answers that it has not taken yet. However many of them it lets wait, the rest of
// the budget is for others. It is safe for concurrent use. The zero Share has no room.
type Share struct {
	budget *Budget
	client string
}

// ShareOf returns the share of a client.
func (b *Budget) ShareOf(client string) Share { return Share{b, client} }

// Count notes n bytes that a [Reservation] holds already. It reports whether the client may hold so much.
func (s Share) Count(n int) bool {
	if s.budget == nil {
		return false
	}
	all := &s.budget.shares
	all.mu.Lock()
	defer all.mu.Unlock()
	held := all.held[s.client]
	if held+int64(n) > LargeShare(s.budget.limit)/shareOf {
		return false
	}
	if all.held == nil {
		all.held = map[string]int64{}
	}
	all.held[s.client] = held + int64(n)
	return true
}

// Uncount gives back what Count noted.
func (s Share) Uncount(n int) {
	all := &s.budget.shares
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.held[s.client] -= int64(n); all.held[s.client] <= 0 {
		delete(all.held, s.client)
	}
}

// Take asks for n bytes of the budget. It reports whether the client may hold them.
func (s Share) Take(n int) bool {
	if !s.Count(n) {
		return false
	}
	if !s.budget.reserve(int64(n), LargeShare(s.budget.limit), nil) {
		s.Uncount(n)
		return false
	}
	return true
}

// Give gives back what Take granted.
func (s Share) Give(n int) {
	s.budget.used.Add(-int64(n))
	s.Uncount(n)
}
