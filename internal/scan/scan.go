// Package scan judges objects that exist by a policy set before it is enforced: the objects of a backend or of files,
// or the writes of an audit log or a recorded HAR. Each is judged by the handlers of the proxy, as a request with it
// would be, and nothing is sent.
//
// A source reads what there is and hands it on in batches. Workers judge batches, each with a judge of its own, and
// their findings are taken in the order in which the source had them, so that two scans of one thing say the same. What
// is in memory at a time is bounded: a few batches, the counts, and as many findings as the report lists.
package scan

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// Run scans.
func Run(ctx context.Context, o Options) (*Report, error) {
	started := time.Now()
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	s := &scan{options: &o, tally: newTally(), progress: &Progress{Part: -1}}
	var err error
	if s.group, err = parseGroup(o.GroupBy); err != nil {
		return nil, err
	}
	sources, err := s.sources(ctx)
	if err != nil {
		return nil, err
	}
	from, err := s.resume()
	if err != nil {
		return nil, err
	}
	err = s.run(ctx, sources, from)
	if ctx.Err() != nil {
		err = ErrInterrupted
	}
	if err != nil {
		if o.StateFile != "" {
			err = errors.Join(err, s.save())
		}
		return nil, err
	}
	s.forget()
	return s.report(time.Since(started)), nil
}

// run leads all items through the workers.
func (s *scan) run(ctx context.Context, sources []source, from position) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inFlight := s.options.Workers*2 + 2
	p := &pipeline{
		work: make(chan *batch, inFlight), order: make(chan *batch, inFlight), free: make(chan *batch, inFlight),
	}
	for range inFlight {
		p.free <- newBatch()
	}
	var workers sync.WaitGroup
	for range s.options.Workers {
		w := s.newWorker()
		workers.Go(func() {
			for b := range p.work {
				w.assess(b)
				close(b.done)
			}
		})
	}
	var failed error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(p.order)
		defer close(p.work)
		e := &emitter{ctx: ctx, pipeline: p, notes: &s.notes, limits: s.options.New.Gateway.ObjectLimits()}
		skipping := from.Source != ""
		for _, one := range sources {
			if skipping && one.name() != from.Source {
				continue
			}
			begin := position{Source: one.name()}
			if skipping {
				begin, skipping = from, false
			}
			if failed = e.readAll(one, begin); failed != nil {
				return
			}
		}
		if skipping {
			failed = usage("the state is of a scan of '%s', which is not read now", from.Source)
		}
	})
	for b := range p.order {
		<-b.done
		s.take(b)
		b.reset()
		p.free <- b
	}
	reader.Wait()
	workers.Wait()
	return failed
}

// saveEvery is how often the state is saved.
const saveEvery = 2 * time.Second

// take takes the results of a batch. Batches come in order.
func (s *scan) take(b *batch) {
	s.tally.add(b.tally)
	room := max(s.options.List-len(s.listed), 0)
	s.listed = append(s.listed, b.findings[:min(room, len(b.findings))]...)
	s.position = b.end
	now := time.Now()
	if s.options.StateFile != "" && now.Sub(s.saved) >= saveEvery {
		s.saved = now
		if err := s.save(); err != nil {
			s.notes.add(err.Error())
		}
	}
	if s.options.Progress != nil {
		s.progress.Source, s.progress.Part = b.end.Source, b.part
		s.progress.Objects, s.progress.Denied = s.tally.Objects, s.tally.Denied
		s.options.Progress(*s.progress)
	}
}
