package memory

import "testing"

// TestHolders: a client alone may hold nearly all of a budget, and each of several about as much as any other. However
// many there are, something is left for one that holds nothing yet.
func TestHolders(t *testing.T) {
	const limit, one = 64 << 20, 4 << 10
	for clients := 1; clients <= 32; clients *= 2 {
		b := NewBudget(limit, 1)
		all := make([]Holder, clients)
		for isTaken := true; isTaken; {
			isTaken = false
			for i := range all {
				isTaken = b.Hold(one, &all[i]) || isTaken
			}
		}
		for i := range all {
			want := int64(limit) * timesFree / int64(1+timesFree*clients)
			if got := all[i].Held(); got < want-2*one*timesFree || got > want+one {
				t.Errorf("of %d clients one holds %d bytes, want about %d", clients, got, want)
			}
		}
		if b.InUse() != 0 || !b.IsShort() {
			t.Errorf("%d bytes are in use, of %d in flight", b.InUse(), b.InFlight())
		}
		var other Holder
		if !b.Hold(one, &other) {
			t.Errorf("beside %d clients another one gets nothing", clients)
		}
		b.Release(one, &other)
		for i := range all {
			b.Release(int(all[i].Held()), &all[i])
		}
		if b.InFlight() != 0 || b.IsShort() {
			t.Errorf("%d bytes are left", b.InFlight())
		}
	}
}

// TestLargeLeaveRoom: large reservations of a client leave room to its own small ones, and what a client is not known
// for is limited by the budget alone.
func TestLargeLeaveRoom(t *testing.T) {
	const limit = 64 << 20
	b := NewBudget(limit, 1)
	var by Holder
	var large Reservation
	large.Open(b, nil)
	large.SetHolder(&by)
	for large.Grow(1 << 20) {
	}
	if held := by.Held(); held < limit/2 || held > LargeShare(limit) {
		t.Errorf("a large reservation holds %d bytes", held)
	}
	if !b.Hold(1<<20, &by) {
		t.Error("the client has no room for small requests")
	}
	b.Release(1<<20, &by)
	large.Close()
	if by.Held() != 0 || b.InUse() != 0 {
		t.Errorf("the client holds %d bytes, and %d are in use", by.Held(), b.InUse())
	}
	if !b.Hold(limit, nil) || b.Hold(1, nil) {
		t.Error("without a client all of the budget may be held, and no more")
	}
}
