package memory

import "sync/atomic"

// timesFree is how many times as much as is free a client may hold, once half of the budget is taken. One client alone may hold
// fifteen sixteenths of the budget then; of many, each holds about as much as any other. Some is always free for one that holds
// little. Large reservations leave a part of what their client may hold to its small ones.
const timesFree, timesFreeOfLarge = 15, 7

// A Holder counts what is held for one client. The zero Holder holds nothing. It is safe for concurrent use.
type Holder struct{ held atomic.Int64 }

// Held is the number of bytes that are held for the client.
func (h *Holder) Held() int64 { return h.held.Load() }

// Hold asks for n bytes for what a client has under way: a connection, or a request in flight, beyond what its [Reservation]
// counts. A nil holder is a client that is not known. Hold reports whether they may be taken.
func (b *Budget) Hold(n int, by *Holder) bool {
	if b.fits(b.used.Load()+b.flight.Load(), int64(n), b.limit, timesFree, by) {
		b.flight.Add(int64(n)) // two at once may take a little more than there is
		by.add(int64(n))
		return true
	}
	return false
}

// Release gives back what Hold granted.
func (b *Budget) Release(n int, by *Holder) {
	b.flight.Add(-int64(n))
	by.add(-int64(n))
}

// Charge counts n bytes, which the budget counts already, for a client. It reports whether the client may hold so much.
func (b *Budget) Charge(n int, by *Holder) bool {
	if !b.fits(b.used.Load()+b.flight.Load()-int64(n), int64(n), b.limit, timesFree, by) {
		return false
	}
	by.add(int64(n))
	return true
}

// Discharge takes back Charge.
func (b *Budget) Discharge(n int, by *Holder) { by.add(-int64(n)) }

// InFlight is the number of bytes that connections and requests in flight take, beyond InUse.
func (b *Budget) InFlight() int64 { return b.flight.Load() }

// IsShort reports whether more than half of the budget is taken, so that each client is limited to its share.
func (b *Budget) IsShort() bool { return b.used.Load()+b.flight.Load() > b.limit/2 }

// fits reports whether n bytes more than are taken may be, up to a limit, and to so many times what is free.
func (b *Budget) fits(taken, n, limit, times int64, by *Holder) bool {
	after := taken + n
	return after <= limit && (by == nil || after <= b.limit/2 || by.held.Load()+n <= times*(b.limit-after))
}

func (h *Holder) add(n int64) {
	if h != nil {
		h.held.Add(n)
	}
}
