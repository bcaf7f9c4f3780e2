package circuit

import "time"

// slots is into how many parts a window is divided: the oldest one is forgotten at a time.
const slots = 10

// window counts the calls of the last time.
type window struct {
	calls, failed [slots]int
	newest        int64 // the number of the newest slot since the year 1970
}

// add counts a call, if the policy needs that.
func (w *window) add(p *Policy, now time.Time, failed bool) {
	if p.Calls <= 0 {
		return
	}
	slot := now.UnixNano() / max(1, int64(p.Window/slots))
	for n := min(slots, slot-w.newest); n > 0; n-- {
		i := (slot - n + 1) % slots
		w.calls[i], w.failed[i] = 0, 0
	}
	w.newest = max(w.newest, slot)
	i := w.newest % slots // a clock that went back counts as now
	w.calls[i]++
	if failed {
		w.failed[i]++
	}
}

func (w *window) sum() (calls, failed int) {
	for i := range w.calls {
		calls, failed = calls+w.calls[i], failed+w.failed[i]
	}
	return calls, failed
}
