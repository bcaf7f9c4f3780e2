package cel

import "sync/atomic"

// An Observation summarizes the results of all evaluations of a program.
type Observation struct {
	ran, wasTrue, wasFalse, failed atomic.Bool
}

// Observe makes the program record its results, for the coverage of tests. It must be called before
// the program is in use.
func (p *Program) Observe(o *Observation) { p.observed = o }

func (o *Observation) note(result bool, err error) {
	switch {
	case err != nil:
		o.failed.Store(true)
	case result:
		o.wasTrue.Store(true)
	default:
		o.wasFalse.Store(true)
	}
}

// Ran reports whether the program was evaluated.
func (o *Observation) Ran() bool { return o.ran.Load() }

// WasTrue reports whether a condition was true once, WasFalse whether it was false.
func (o *Observation) WasTrue() bool { return o.wasTrue.Load() }

// WasFalse reports whether a condition was false, or failed, once.
func (o *Observation) WasFalse() bool { return o.wasFalse.Load() || o.failed.Load() }
