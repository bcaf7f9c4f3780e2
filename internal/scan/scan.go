// Package scan judges objects that exist by a policy set before it is enforced: the objects of a backend or of files, or
// the writes of an audit log or a recorded HAR. Each is judged by the handlers of the proxy, as a request with it would
// be, and nothing is sent.
//
// A source reads what there is and hands it on in batches. Workers judge batches, each with a judge of its own, and their
// findings are taken in the order in which the source had them, so that two scans of one thing say the same. What is in
// memory at a time is bounded: a few batches, the counts, and as many findings as the report lists.
package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy"
)

// Operation says as what objects are judged.
type Operation string

// The operations.
const (
	Create Operation = "create"
	Update Operation = "update"
)

// A Side is a policy set, and a gateway that has it in force.
type Side struct {
	Set     *policies.Set
	Gateway *proxy.Gateway
}

// Options say what is judged, by what and how.
type Options struct {
	// New judges. Old, if it is not nil, judges too, and the report says what differs.
	New, Old *Side
	// Upstream is the backend whose paths the objects have.
	Upstream string
	// Files, AuditLogs and HARs are files; "-" is Input. Backend is read if there are none of them.
	Files, AuditLogs, HARs []string
	Backend                state.Backend
	Input                  io.Reader
	// Resources are the resources to read, PLURAL or PLURAL.GROUP; empty for all that policies are about. Objects
	// without a kind are of the one that is named.
	Resources []string
	// Namespace is the only namespace that is read; empty for all.
	Namespace string
	// As is what objects are judged as; User is who sends them.
	As   Operation
	User identity.User
	// Workers judge at a time; 0 is one for each processor. Rate is how many requests a second the backend gets at
	// most; 0 is no bound.
	Workers int
	Rate    float64
	// GroupBy counts by "namespace" or "label=KEY" too; empty for neither.
	GroupBy string
	// List is how many findings are listed; the counts have all of them.
	List int
	// StateFile remembers how far the scan is, so that another one goes on; empty for none.
	StateFile string
	// Progress is told how far the scan is, from one goroutine; nil if nobody asks.
	Progress func(Progress)
}

// Progress says how far a scan is.
type Progress struct {
	// Source is the file or the resource that is read.
	Source string
	// Part is how much of all sources was read, from 0 to 1; less than 0 if nobody knows.
	Part float64
	// Objects were judged, Denied of them refused.
	Objects, Denied int64
}

// ErrInterrupted is the error of a scan that ended early and can go on from its state.
var ErrInterrupted = errors.New("the scan was interrupted")

// A UsageError is the error of options that cannot be used.
type UsageError struct{ Err error }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e UsageError) Unwrap() error { return e.Err }

func usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Run scans.
func Run(ctx context.Context, o Options) (*Report, error) {
	started := time.Now()
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	s := &scan{Options: &o, tally: newTally(), progress: &Progress{Part: -1}}
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

// A scan is under way.
type scan struct {
	*Options
	group    group
	tally    *Tally
	listed   []Finding
	position position // up to which everything was judged
	saved    time.Time
	progress *Progress
	notes    notes
}

// A position is a place in what the sources have.
type position struct {
	Source string `json:"source"`
	// Continue is the token of the page, if the source has pages, and Last names the object before it.
	Continue string `json:"continue,omitempty"`
	Last     string `json:"last,omitempty"`
	// Done is how many items of the page, or of the source, were judged.
	Done int64 `json:"done"`
}

// A source has items.
type source interface {
	// name tells the source from the others.
	name() string
	// read hands on the items behind a position.
	read(ctx context.Context, from position, to *emitter) error
}

// run leads all items through the workers.
func (s *scan) run(ctx context.Context, sources []source, from position) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inFlight := s.Workers*2 + 2
	p := &pipeline{
		work: make(chan *batch, inFlight), order: make(chan *batch, inFlight), free: make(chan *batch, inFlight),
	}
	for range inFlight {
		p.free <- newBatch()
	}
	var workers sync.WaitGroup
	for range s.Workers {
		w := s.newWorker()
		workers.Go(func() {
			for b := range p.work {
				w.judge(b)
				close(b.done)
			}
		})
	}
	var failed error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(p.order)
		defer close(p.work)
		e := &emitter{ctx: ctx, pipeline: p, notes: &s.notes, limits: s.New.Gateway.ObjectLimits()}
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

// take takes what a batch came to. Batches come in order.
func (s *scan) take(b *batch) {
	s.tally.add(b.tally)
	room := max(s.List-len(s.listed), 0)
	s.listed = append(s.listed, b.findings[:min(room, len(b.findings))]...)
	s.position = b.end
	now := time.Now()
	if s.StateFile != "" && now.Sub(s.saved) >= saveEvery {
		s.saved = now
		if err := s.save(); err != nil {
			s.notes.add(err.Error())
		}
	}
	if s.Progress != nil {
		s.progress.Source, s.progress.Part = b.end.Source, b.part
		s.progress.Objects, s.progress.Denied = s.tally.Objects, s.tally.Denied
		s.Progress(*s.progress)
	}
}

// notes are what a reader of the report has to know beside the findings.
type notes struct {
	mu  sync.Mutex
	all []string
}

// maxNotes is how many notes there are at most.
const maxNotes = 100

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.all) < maxNotes {
		n.all = append(n.all, text)
	}
}
