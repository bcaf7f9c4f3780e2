package state

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Waits between attempts, and how long one request to a backend may take.
const (
	longestWait = 30 * time.Second
	// steady is how long a watch must last for the waits to start anew, if it was not asked to end sooner.
	steady = 10 * time.Second
	// firstReading is how long a request waits for the first reading of a collection, as kube-apiserver's does.
	firstReading = time.Second
	// absentWait is how long a collection that the backend does not have is not looked for again.
	absentWait = 10 * time.Second
	// listTimeout bounds the reading of a whole collection.
	listTimeout = 2 * time.Minute
)

// feed keeps a collection up to date, in a goroutine of its own.
type feed struct {
	source  Source
	backend func() Backend
	log     *slog.Logger
	changed func(path string, err error)
	read    func(kind schema.GroupVersionKind)
	store   store

	firstWait time.Duration // after a failure

	// seen is when the backend last showed that the collection is right, in nanoseconds of Unix time: by a list, or by
	// the begin, an event or the end of a watch. isWatched says that a watch is open whose time is not over.
	seen      atomic.Int64
	isWatched atomic.Bool
	liveness  atomic.Pointer[Liveness] // of the next watch
	isSilent  bool                     // the last watch ended because the backend was silent
	tried     chan struct{}            // closed when the first attempt is over
	first     sync.Once
	// events and lists count what was read, silences the watches that were given up because the backend was silent.
	// lastEvent is when an event came last, in nanoseconds of Unix time.
	events, lists, silences atomic.Uint64
	lastEvent               atomic.Int64
	failure                 atomic.Pointer[failure]
	round                   atomic.Pointer[context.CancelFunc] // ends what the feed does now, so that it begins anew

	stop func()
}

// failure is why the collection cannot be read at the moment.
type failure struct{ err error }

func newFeed(s *Source, backend func() Backend, o *Options) *feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &feed{source: *s, backend: backend, log: o.Log.With("path", s.Path), changed: o.Changed, read: o.Read,
		firstWait: o.RetryWait, tried: make(chan struct{}), stop: cancel}
	f.liveness.Store(&o.Liveness)
	go f.run(ctx)
	return f
}

// age is how long ago the backend last showed that the collection is right.
func (f *feed) age(now time.Time) time.Duration {
	return max(now.Sub(time.Unix(0, f.seen.Load())), 0)
}

// staleness is how old the collection counts as for policies: while it is watched it is known, since a watch that dies
// is noticed in time.
func (f *feed) staleness(now time.Time) time.Duration {
	if f.isWatched.Load() {
		return 0
	}
	return f.age(now)
}

// why is the error that keeps the collection from being read; nil if there is none.
func (f *feed) why() error {
	if failed := f.failure.Load(); failed != nil {
		return failed.err
	}
	return nil
}

func (f *feed) run(ctx context.Context) {
	wait := f.firstWait
	for ctx.Err() == nil {
		round, end := context.WithCancel(ctx)
		f.round.Store(&end)
		version, err := f.fill(round)
		switch {
		case f.source.IsOptional && isAbsent(err):
			f.store.fill(listing{})
			f.read(f.source.Kind)
			f.prove()
			f.noteSuccess()
			wait = f.firstWait
			pause(round, jittered(absentWait))
			end()
			continue
		case err == nil && f.source.Mode == Poll:
			f.noteSuccess()
			wait = f.firstWait
			pause(round, f.source.Period)
			end()
			continue
		case err == nil && version == "":
			err = errors.New("the list has no resourceVersion to watch from: state the mode 'Poll'")
		case err == nil:
			wait = f.firstWait
			err = f.follow(round, version)
		}
		isRenewed := round.Err() != nil
		end()
		switch {
		case ctx.Err() != nil:
			return
		case isRenewed:
			wait = f.firstWait
			continue
		}
		f.noteFailure(err)
		pause(ctx, jittered(wait))
		wait = min(2*wait, longestWait)
	}
}

// renew has the collection listed anew, because it is read elsewhere now.
func (f *feed) renew() {
	if end := f.round.Load(); end != nil {
		(*end)()
	}
}

// fill lists the collection.
func (f *feed) fill(ctx context.Context) (version string, err error) {
	b := f.backend()
	if b == nil {
		return "", f.source.noBackend()
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	started := time.Now()
	s := &f.source
	all, err := list(ctx, b, s.target(""), s.Items, s.Kind, bounds{s.MaxObjects, s.MaxBytes})
	if err != nil {
		return "", err
	}
	f.lists.Add(1)
	f.store.fill(all)
	f.read(f.source.Kind)
	f.seen.Store(started.UnixNano())
	return all.version, nil
}

// follow watches the collection, again and again, until it has to be listed anew. Its error says why.
func (f *feed) follow(ctx context.Context, version string) error {
	wait := f.firstWait
	for {
		live := *f.liveness.Load()
		opened, asked := time.Now(), live.period()
		var err error
		version, err = f.watch(ctx, f.backend(), version, asked, live, func() {
			opened = time.Now()
			f.isWatched.Store(true)
			f.noteSuccess()
		})
		f.isWatched.Store(false)
		wasSilent := f.isSilent
		f.isSilent = errors.Is(err, errSilent)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case f.isSilent:
			f.silences.Add(1)
			if !wasSilent {
				f.log.Warn("a watch was silent for too long, and is opened anew on another connection")
			}
			continue // it has lasted for its time
		case errors.Is(err, errTooMany):
			f.store.forget() // part of a collection is worse than none
			return err
		case errors.Is(err, errGone), errors.Is(err, errNotJSON):
			return err
		}
		if time.Since(opened) > min(steady, asked/2) {
			wait = f.firstWait
			if err == nil {
				continue
			}
		}
		f.noteFailure(err)
		pause(ctx, jittered(wait))
		if wait = min(2*wait, longestWait); wait == longestWait {
			return errors.New("the watch does not hold")
		}
	}
}

// prove notes that the backend has shown now that the collection is right.
func (f *feed) prove() { f.seen.Store(time.Now().UnixNano()) }

// synced reports whether the first attempt to read the collection is over.
func (f *feed) synced() bool {
	select {
	case <-f.tried:
		return true
	default:
		return false
	}
}

// wait waits a moment for the first attempt: at the start, and after a reload, that is all that is missing.
func (f *feed) wait(ctx context.Context) {
	if f.synced() {
		return
	}
	t := time.NewTimer(firstReading)
	defer t.Stop()
	select {
	case <-f.tried:
	case <-ctx.Done():
	case <-t.C:
	}
}

func (f *feed) tryIsOver() { f.first.Do(func() { close(f.tried) }) }

func (f *feed) noteSuccess() {
	defer f.tryIsOver()
	if f.failure.Swap(nil) != nil {
		f.log.Info("the state can be read again")
		f.changed(f.source.Path, nil)
	}
}

func (f *feed) noteFailure(err error) {
	defer f.tryIsOver()
	if err == nil || errors.Is(err, errGone) {
		return
	}
	if before := f.failure.Swap(&failure{err}); before == nil || before.err.Error() != err.Error() {
		f.log.Warn("the state cannot be read", "cause", err)
		f.changed(f.source.Path, err)
	}
}

// jittered keeps gateways from asking a backend all at the same time.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
