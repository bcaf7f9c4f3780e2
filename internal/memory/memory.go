// Package memory bounds what all requests together make the gateway hold, and how many of them do heavy work at a time.
//
// A [Budget] is the process's; a [Reservation] is one request's share of it. What a request holds
// beyond a small allowance (its body, parsed documents and edits, old objects, what expressions
// make) is asked for before it is taken, and given back when it is let go. Requests do not wait for
// memory: one that cannot have it is refused, and others go on.
package memory

import (
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/presence"
)

const (
	// Allowance is the memory that each reservation may hold uncounted: about what its connection
	// holds anyway. Most requests need no more, and never touch the budget.
	Allowance = 16 << 10
	// step is the amount that requests reserve at a time, so that the budget is touched seldom.
	step = 64 << 10
	// small is how large a reservation may be to use all of the budget; larger ones leave a part of
	// it to the small.
	small = 1 << 20
	// part is the part of the budget that is kept for small reservations.
	part = 8
	// overdraft is how much more a reservation gets whatever the budget says, once the work that it
	// was for is done.
	overdraft = 64 << 10
)

// timesFree is how many times as much as is free a client may hold, once half of the budget is taken. One client alone
// may hold fifteen sixteenths of the budget then; of many, each holds about as much as any other. Some is always free
// for one that holds little. Large reservations leave a part of what their client may hold to its small ones.
const timesFree, timesFreeOfLarge = 15, 7

// A Budget is the memory that all requests together may hold. It is safe for concurrent use.
type Budget struct {
	limit    int64
	used     atomic.Int64
	peak     atomic.Int64
	inFlight atomic.Int64 // see Hold
	gate     gate
	// shares are the clients' of what waits for them.
	shares shares
}

// NewBudget returns a budget of so many bytes, for requests; so many of them may do heavy work at a time.
func NewBudget(limit int64, workers int) *Budget {
	return &Budget{limit: limit, gate: gate{workers: max(workers, 1)}}
}

// Limit is the size of the budget in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// InUse is the number of bytes that are taken.
func (b *Budget) InUse() int64 { return b.used.Load() }

// Peak is the largest number of bytes that were ever taken at once.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Working is the number of requests that do heavy work now, waiting the number of requests that wait until they may.
func (b *Budget) Working() (working, waiting int) { return b.gate.count() }

// A Holder counts what is held for one client. The zero Holder holds nothing. It is safe for concurrent use.
type Holder struct{ held atomic.Int64 }

// Held is the number of bytes that are held for the client.
func (h *Holder) Held() int64 { return h.held.Load() }

// Hold asks for n bytes for what a client has under way: a connection, or a request in flight, beyond what its
// [Reservation] counts. A nil holder is a client that is not known. Hold reports whether they may be taken.
func (b *Budget) Hold(n int, by *Holder) bool {
	if b.fits(b.used.Load()+b.inFlight.Load(), int64(n), b.limit, timesFree, by) {
		b.inFlight.Add(int64(n)) // two at once may take a little more than there is
		by.add(int64(n))
		return true
	}
	return false
}

// Release gives back what Hold granted.
func (b *Budget) Release(n int, by *Holder) {
	b.inFlight.Add(-int64(n))
	by.add(-int64(n))
}

// Charge counts n bytes, which the budget counts already, for a client. It reports whether the client may hold so much.
func (b *Budget) Charge(n int, by *Holder) bool {
	if !b.fits(b.used.Load()+b.inFlight.Load()-int64(n), int64(n), b.limit, timesFree, by) {
		return false
	}
	by.add(int64(n))
	return true
}

// Discharge takes back Charge.
func (b *Budget) Discharge(n int, by *Holder) { by.add(-int64(n)) }

// InFlight is the number of bytes that connections and requests in flight take, beyond InUse.
func (b *Budget) InFlight() int64 { return b.inFlight.Load() }

// IsShort reports whether more than half of the budget is taken, so that each client is limited to its share.
func (b *Budget) IsShort() bool { return b.used.Load()+b.inFlight.Load() > b.limit/2 }

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

// reserve takes n bytes as long as no more than limit are taken then.
func (b *Budget) reserve(n, limit int64, by *Holder) bool {
	times := int64(timesFree)
	if limit < b.limit {
		times = timesFreeOfLarge
	}
	for {
		used := b.used.Load()
		if !b.fits(used+b.inFlight.Load(), n, limit, times, by) {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			b.noteUse(used + n)
			by.add(n)
			return true
		}
	}
}

// Take asks for n bytes for what is not yet a request's. It reports whether they may be taken.
func (b *Budget) Take(n int) bool { return b.TakeFor(n, nil) }

// Give gives back what Take granted.
func (b *Budget) Give(n int) { b.GiveFor(n, nil) }

// TakeFor is Take for a client.
func (b *Budget) TakeFor(n int, by *Holder) bool {
	return b.reserve(int64(n), LargeShare(b.limit), by)
}

// GiveFor gives back what TakeFor granted.
func (b *Budget) GiveFor(n int, by *Holder) { b.giveBack(int64(n), by) }

func (b *Budget) giveBack(n int64, by *Holder) {
	b.used.Add(-n)
	by.add(-n)
}

func (b *Budget) noteUse(used int64) {
	for peak := b.peak.Load(); used > peak && !b.peak.CompareAndSwap(peak, used); peak = b.peak.Load() {
	}
}

// Refusal says why a request cannot go on.
type Refusal uint8

const (
	// None: it can.
	None Refusal = iota
	// Full: the budget is used up.
	Full
	// Busy: too many requests wait to do heavy work, or this one has waited too long.
	Busy
	// Over: the client is gone, or the time that it gave has passed.
	Over
)

// A Reservation counts the memory that one request holds. It belongs to the goroutine that serves
// the request. The zero Reservation, and a nil one, refuses nothing.
type Reservation struct {
	budget   *Budget
	client   *presence.Client
	by       *Holder // for whom the budget counts it; nil if that is not known
	until    time.Time
	used     int64 // what was asked for and not given back
	reserved int64 // of the budget
	refusal  Refusal
	done     bool // see Commit
	failed   bool // see Fail
	heavy    bool // the request did heavy work
	working  bool // it has a place at the gate
}

// Open says from which budget to reserve, and for whom.
func (a *Reservation) Open(b *Budget, client *presence.Client) {
	a.budget, a.client = b, client
}

// SetHolder says for whom the budget counts what is reserved from now on. Nothing is reserved yet.
func (a *Reservation) SetHolder(by *Holder) { a.by = by }

// SetDeadline sets when the client's time passes; the zero time is never.
func (a *Reservation) SetDeadline(t time.Time) { a.until = t }

// Close gives back all that the reservation holds. It may be used on.
func (a *Reservation) Close() {
	a.Rest()
	if a.reserved > 0 {
		a.budget.giveBack(a.reserved, a.by)
	}
	*a = Reservation{budget: a.budget, client: a.client, by: a.by}
}

// Grow asks for n bytes more, and reports whether they may be taken. Once it has refused some, Refusal says so, and the
// request cannot go on.
func (a *Reservation) Grow(n int) bool {
	if a == nil {
		return true
	}
	a.used += int64(n)
	if a.used <= a.reserved+Allowance {
		return true
	}
	return a.reserve(n)
}

// Try asks for n more bytes that the request can do without. A refusal has no effect.
func (a *Reservation) Try(n int) bool {
	if a == nil {
		return true
	}
	refusal, done := a.refusal, a.done
	a.done = false
	isGranted := a.Grow(n)
	a.refusal, a.done = refusal, done
	return isGranted
}

func (a *Reservation) reserve(n int) bool {
	if a.budget == nil {
		return true
	}
	limit := a.budget.limit
	if a.used > small {
		limit = LargeShare(limit)
	}
	if missing := a.used - Allowance - a.reserved; a.take((missing+step-1)/step*step, limit) || a.take(missing, limit) {
		return true
	}
	if a.done && n <= overdraft {
		return true
	}
	a.used -= int64(n)
	if !a.done {
		a.refusal = Full
	}
	return false
}

func (a *Reservation) take(n, limit int64) bool {
	if !a.budget.reserve(n, limit, a.by) {
		return false
	}
	a.reserved += n
	return true
}

// Shrink gives n bytes back.
func (a *Reservation) Shrink(n int) {
	if a == nil {
		return
	}
	a.used = max(a.used-int64(n), 0)
	if a.reserved-a.used >= step-Allowance {
		a.giveBack()
	}
}

// giveBack gives back what is reserved and not used, but for less than a step.
func (a *Reservation) giveBack() {
	keep := (max(a.used-Allowance, 0) + step - 1) / step * step
	if surplus := a.reserved - keep; surplus > 0 {
		a.budget.giveBack(surplus, a.by)
		a.reserved = keep
	}
}

// Keep gives back all but n bytes.
func (a *Reservation) Keep(n int) {
	a.used = int64(n)
	a.giveBack()
}

// Used is the number of bytes that the reservation holds.
func (a *Reservation) Used() int64 { return a.used }

// Refusal says whether, and why, the request cannot go on.
func (a *Reservation) Refusal() Refusal { return a.refusal }

// Fail notes that something was not made whole for the lack of memory, committed or not. Nothing that depends on it may
// be sent from then on.
func (a *Reservation) Fail() {
	if a != nil {
		a.failed = true
	}
}

// MaySend reports whether the request was refused nothing that keeps it from going on, and nothing failed.
func (a *Reservation) MaySend() bool { return a.refusal == None && !a.failed }

// Commit notes that what the request was for is done, so that it must be answered: little is always granted from now
// on, and what is refused keeps nothing from going on.
func (a *Reservation) Commit() { a.done = true }

// Committed reports whether Commit was called.
func (a *Reservation) Committed() bool { return a.done }

// Reopen takes back Commit: what was done turned out not to be.
func (a *Reservation) Reopen() { a.done = false }

// LargeShare is how much of a budget of so many bytes large reservations may use.
func LargeShare(limit int64) int64 { return limit - limit/part }
