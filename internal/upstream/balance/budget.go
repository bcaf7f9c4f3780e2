package balance

import "time"

// MaxSaved is how many retries can be saved up in quiet times.
const MaxSaved = 100

// budget is the rest of a RetryBudget: in any time of d there are at most
// MaxSaved + requests × Percent/100 + (d + one second) × PerSecond retries.
type budget struct {
	RetryBudget
	hundredths int       // of retries, which requests have earned
	taken      time.Time // up to when the retries of each second are taken
}

// deposit is for a request that is sent for the first time.
func (b *budget) deposit() {
	b.hundredths = min(b.hundredths+b.Percent, 100*MaxSaved)
}

// withdraw reports whether a request may be sent again.
func (b *budget) withdraw(now time.Time) bool {
	if b.hundredths >= 100 {
		b.hundredths -= 100
		return true
	}
	if b.PerSecond <= 0 {
		return false
	}
	taken := b.taken
	if taken.Before(now) {
		taken = now
	}
	taken = taken.Add(time.Second / time.Duration(b.PerSecond))
	if taken.Sub(now) > time.Second {
		return false
	}
	b.taken = taken
	return true
}
