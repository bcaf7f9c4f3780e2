package bundles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/policies/modules"
)

// follower keeps one bundle up to date.
type follower struct {
	name    string
	source  Source
	options *Options

	// The next ones belong to restore and then to run, which never run at once.
	tag     string // of the version in force; empty: the whole bundle is asked for
	waits   bool   // the server holds answers back
	isKept  bool   // the version in force is the one on disk
	retries int

	mu      sync.Mutex // guards what follows
	current *bundle.Bundle
	state   Status
}

// usable returns why no policy may judge by the bundle now.
func (f *follower) usable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return notLoaded(f.name)
	}
	age := f.options.Now().Sub(f.state.Confirmed)
	if most := f.source.MaxStaleness; most > 0 && age > most {
		return fmt.Errorf("the bundle '%s' is stale: it was last known to be the newest more than %d seconds ago", f.name, int(most.Seconds()))
	}
	return nil
}

// loaded returns why the bundle is not there, with what went wrong, which clients do not see.
func (f *follower) loaded() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil {
		return nil
	}
	if f.state.Failure == "" {
		return fmt.Errorf("%w: nobody was asked for it yet", notLoaded(f.name))
	}
	return fmt.Errorf("%w: %s", notLoaded(f.name), f.state.Failure)
}

func (f *follower) status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state
	s.Name = f.name
	return s
}

// maxKept bounds the file that a bundle is kept in. Bundles are bounded when they are downloaded.
const maxKept = 1 << 30

// restore loads the file that the bundle is in, or what was kept on disk. The latter is follower to all
// that holds for an answer of the server, and is as old as it was.
func (f *follower) restore(ctx context.Context) {
	if _, local := f.source.From.(*File); local {
		_ = f.update(ctx) // it was told
		return
	}
	if f.source.Keep == "" {
		return
	}
	var held memory.Reservation
	held.Open(f.options.Memory, nil)
	defer held.Close()
	archive, info, err := readFile(f.source.Keep, maxKept, &held)
	if err != nil {
		if _, missing := os.Stat(f.source.Keep); !errors.Is(missing, fs.ErrNotExist) {
			f.tell(failed(Keep, fmt.Errorf("the file '%s' %w", f.source.Keep, err)))
		}
		return
	}
	at := info.ModTime()
	if now := f.options.Now(); at.After(now) {
		at = now
	}
	if err := f.take(archive, at, false, &held); err != nil {
		f.tell(failed(Keep, fmt.Errorf("the file '%s': %w", f.source.Keep, err)))
	}
}

// run asks for new versions until ctx is done.
func (f *follower) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	if f.tag != "" { // a file that was just read
		timer.Reset(f.delay(nil, f.source.MaxDelay))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		err := f.update(ctx)
		if ctx.Err() != nil {
			return
		}
		timer.Reset(f.delay(err, time.Since(began)))
	}
}

const (
	// firstRetry is how long after the first of several errors the server is asked again.
	firstRetry = time.Second
	// leastWait is how long at least a question takes whose answer is follower back: a server that
	// answers at once is not asked without end.
	leastWait = time.Second
	// longestHold is how long at most a server is asked to hold an answer back: what it answers then shows that the
	// connection carries answers still.
	longestHold = 30 * time.Second
)

// delay returns when to ask again after an answer that took so long.
func (f *follower) delay(err error, took time.Duration) time.Duration {
	if err != nil {
		wait := min(firstRetry<<min(f.retries, 20), f.source.MaxDelay)
		f.retries++
		return spread(wait/2, wait)
	}
	f.retries = 0
	if f.waits && f.source.Wait > 0 {
		return max(0, leastWait-took)
	}
	return spread(f.source.MinDelay, f.source.MaxDelay)
}

// spread returns a time between two others, so that gateways do not all ask at once.
func spread(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + rand.N(most-least)
}

// update asks for a version, and brings it into force if it is another one.
func (f *follower) update(ctx context.Context) error {
	var wait time.Duration
	if f.waits && f.tag != "" {
		wait = min(f.source.Wait, longestHold)
	}
	var held memory.Reservation
	held.Open(f.options.Memory, nil)
	defer held.Close()
	answer, err := f.source.From.Fetch(ctx, f.tag, wait, &held)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return f.failed(failed(Download, err))
	}
	f.waits = answer.Waits
	if answer.Archive == nil {
		f.confirm()
		return nil
	}
	if err := f.take(answer.Archive, f.options.Now(), true, &held); err != nil {
		return f.failed(err)
	}
	f.tag = answer.Tag
	f.confirm()
	return nil
}

// take reads an archive and brings it into force. It is kept on disk if keep says so. What that takes is asked of held.
func (f *follower) take(archive []byte, at time.Time, keep bool, held *memory.Reservation) error {
	o := f.source.Read()
	o.Memory = held
	next, err := bundle.Read(archive, o)
	if err != nil {
		return failed(Verify, err)
	}
	f.mu.Lock()
	current := f.current
	f.mu.Unlock()
	if current != nil && current.Sum == next.Sum {
		return nil
	}
	if next.IsDelta() {
		switch {
		case current == nil:
			return failed(Verify, errors.New("a delta needs a bundle that it changes, and none is loaded"))
		case f.source.Keep != "":
			return failed(Verify, errors.New("a delta must not be sent for a bundle that is kept on disk, where the change would be lost"))
		}
		if next, err = current.Patched(next, o); err != nil {
			return failed(Verify, err)
		}
	}
	if err := f.options.Activate(f.name, modules.Bundle{Bundle: next, Usable: f.usable}); err != nil {
		return failed(Activate, err)
	}
	f.mu.Lock()
	f.current = next
	f.state.Revision, f.state.Activated, f.state.Confirmed = next.Revision, f.options.Now(), at
	f.mu.Unlock()
	f.options.Log.Info("a bundle is in force", "bundle", f.name, "revision", next.Revision, "sha256", next.Sum)
	if f.isKept = !keep; keep && f.source.Keep != "" {
		f.keep(archive)
	}
	return nil
}

// keep writes the version in force to disk.
func (f *follower) keep(archive []byte) {
	if err := write(f.source.Keep, archive); err != nil {
		f.tell(failed(Keep, err))
		return
	}
	f.isKept = true
	f.mu.Lock()
	if f.state.Stage == Keep {
		f.state.forget()
	}
	f.mu.Unlock()
}

// forget takes out what went wrong.
func (s *Status) forget() { s.Failed, s.Stage, s.Failure = time.Time{}, "", "" }

// confirm notes that the version in force is the newest.
func (f *follower) confirm() {
	now := f.options.Now()
	f.mu.Lock()
	f.state.Confirmed = now
	if f.state.Stage != Keep {
		f.state.forget()
	}
	f.mu.Unlock()
	if f.isKept && f.source.Keep != "" {
		touch(f.source.Keep, now)
	}
}

// failed notes that there is no new version. The next question is for the whole bundle.
func (f *follower) failed(err error) error {
	f.tag = ""
	f.tell(err)
	return err
}

// tell records an error, counts it and logs it.
func (f *follower) tell(err error) {
	stage := Download
	var at *failure
	if errors.As(err, &at) {
		stage = at.stage
	}
	f.mu.Lock()
	f.state.Failed, f.state.Stage, f.state.Failure = f.options.Now(), stage, err.Error()
	is := "no version is in force"
	if f.current != nil {
		is = "the version in force stays"
	}
	f.mu.Unlock()
	f.options.Failed(f.name, stage)
	f.options.Log.Error("a bundle failed, "+is, "bundle", f.name, "stage", string(stage), "cause", err)
}
