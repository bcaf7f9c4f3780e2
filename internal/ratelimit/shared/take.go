package shared

import (
	"errors"
	"fmt"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
)

// ErrUnavailable says that Redis failed and nothing was decided.
var ErrUnavailable = errors.New("redis is unavailable")

// Take asks for the tokens of all demands, and reports whether the request passes: then they are taken, and else none
// is. It returns within the Timeout. Each demand says whether its bucket has the tokens, also when another one refuses.
// An error is ErrUnavailable.
func (s *Store) Take(demands []Demand) (bool, error) {
	began := s.clock()
	passes, outcome, err := s.take(demands, began)
	s.metrics.SharedLimitDecided(outcome, time.Duration(s.clock()-began))
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return passes, nil
}

func (s *Store) take(demands []Demand, now int64) (passes bool, outcome string, err error) {
	passes, outcome = true, OutcomeLeased
	asking, leasing := 0, false
	for i := range demands {
		d := &demands[i]
		if leasing { // others wait for this request, so it waits for none
			_ = s.known.consult(d, now)
		} else if !s.consult(d, now) {
			s.undo(demands[:i], now)
			return false, OutcomeTimeout, ErrTimeout
		}
		leasing = leasing || d.leasing
		switch {
		case d.decidedBy == asked:
			asking++
		case d.decidedBy == known && !d.Advisory:
			passes, outcome = false, OutcomeKnown
		}
	}
	if passes && asking > 0 {
		passes, outcome, err = s.ask(demands, asking, now)
		for i := range demands {
			demands[i].sent = demands[i].decidedBy == asked && outcome != OutcomeOpen
		}
	}
	if !passes {
		s.undo(demands, now)
	}
	return passes, outcome, err
}

// consult decides on a demand without asking Redis, if that is possible: false if that took too long. While one request
// asks for a lease others wait for it, since one batch is enough for many.
func (s *Store) consult(d *Demand, began int64) bool {
	for now := began; ; now = s.clock() {
		filled := s.known.consult(d, now)
		if filled == nil {
			return true
		}
		left := s.options.Timeout - time.Duration(now-began)
		if left <= 0 {
			return false
		}
		timer := time.NewTimer(left)
		select {
		case <-filled:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// undo takes back what the gateway did on its own for a request that does not pass.
func (s *Store) undo(demands []Demand, now int64) {
	for i := range demands {
		d := &demands[i]
		if d.decidedBy == leased {
			s.known.undo(d, now)
		}
		if d.leasing {
			s.known.unfill(d)
		}
	}
}

// ask has Redis decide on the demands that nothing is known of.
func (s *Store) ask(demands []Demand, asking int, now int64) (bool, string, error) {
	t := s.prepare(demands, asking)
	var room [maxInline]admission
	waiting := append(room[:0], make([]admission, len(t.calls))...)
	for i := range t.calls {
		c := &t.calls[i]
		n, err := s.node(c.keys[0])
		if err == nil {
			if waiting[i].probe, err = n.admit(); err == nil {
				waiting[i].node = n
			}
		}
		if err == nil {
			err = n.submit(c)
		}
		if err != nil {
			c.finish(nil, err)
		}
	}
	answered := t.wait(s.options.Timeout - time.Duration(s.clock()-now))
	err := t.report(waiting)
	if err == nil && answered {
		passes := s.read(demands, t, now)
		t.release()
		if passes {
			return true, OutcomeAdmitted, nil
		}
		return false, OutcomeRefused, nil
	}
	s.abort(demands, t)
	var open *circuit.OpenError
	switch {
	case !answered:
		return false, OutcomeTimeout, ErrTimeout
	case errors.As(err, &open):
		return false, OutcomeOpen, err
	}
	return false, OutcomeError, err
}

// maxInline is how many servers a request can ask without memory of its own.
const maxInline = 8

// prepare makes the calls for what is asked: one for all buckets, or one for each if they may be on
// different servers.
func (s *Store) prepare(demands []Demand, asking int) *ticket {
	calls, each := 1, asking
	if s.many != nil {
		calls, each = asking, 1
	}
	t := newTicket(calls)
	next := 0
	for i := range t.calls {
		c := &t.calls[i]
		c.script, c.ticket = take, t
		c.keys, c.lines = make([]string, 0, each), make([]string, 0, each)
		for ; len(c.keys) < each; next++ {
			if d := &demands[next]; d.decidedBy == asked {
				c.keys = append(c.keys, d.Key.name(s.options.Prefix))
				c.lines = append(c.lines, d.line())
			}
		}
	}
	return t
}

// report reports the results of the calls to the breakers. It returns the first error.
func (t *ticket) report(waiting []admission) error {
	var first error
	for i := range t.calls {
		c := &t.calls[i]
		err := ErrTimeout
		if c.ready.Load() {
			err = c.problem()
		}
		if a := waiting[i]; a.node != nil {
			a.node.done(a.probe, err)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// admission is a call that the breaker of its server let through; without a node it did not.
type admission struct {
	node  *node
	probe int
}

// problem is why a call has no usable answer.
func (c *call) problem() error {
	switch {
	case c.err != nil:
		return c.err
	case len(c.reply) != 3+2*len(c.keys):
		return errors.New("the answer is not one of this script")
	}
	return nil
}

// read sets in the demands what Redis decided, and whether the request passes.
func (s *Store) read(demands []Demand, t *ticket, now int64) bool {
	passes := true
	for i := range t.calls {
		passes = passes && t.calls[i].reply[0] == 1
	}
	next := 0
	for i := range t.calls {
		reply := t.calls[i].reply
		for pair := reply[3:]; len(pair) > 0; next++ {
			d := &demands[next]
			if d.decidedBy != asked {
				continue
			}
			d.Ahead = time.Duration(pair[0])
			d.taken = taken{pair[1], reply[1], reply[2]}
			pair = pair[2:]
			if d.taken.tokens == 0 {
				d.Wait = d.waitAhead(d.Ahead)
			} else if !passes {
				s.giveBack(d.Key, d.taken, d.Limit.Interval)
				d.Ahead -= time.Duration(d.taken.tokens) * d.Limit.Interval
				d.taken = taken{}
			}
			s.known.learn(d, now)
		}
	}
	return passes
}

// abort gives back what was taken by calls that succeeded, of a request that others failed.
func (s *Store) abort(demands []Demand, t *ticket) {
	if len(t.calls) == 1 {
		return
	}
	next := 0
	for i := range t.calls {
		for demands[next].decidedBy != asked {
			next++
		}
		if c := &t.calls[i]; c.ready.Load() && c.problem() == nil && c.reply[4] > 0 {
			d := &demands[next]
			s.giveBack(d.Key, taken{c.reply[4], c.reply[1], c.reply[2]}, d.Limit.Interval)
		}
		next++
	}
}
