// Package credentials keeps what proves who somebody is up to date with the files that hold it: certificates and their
// keys, certificate authorities, bearer tokens. Such files are replaced while the gateway runs, by the kubelet, by
// cert-manager or by hand. A file that cannot be used never replaces what was read before.
package credentials

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options configure a Watcher. The zero value is useful.
type Options struct {
	// Reloaded learns of each new reading of files that have changed: whether it succeeded.
	Reloaded func(ok bool)
	// Poll is how often the files are looked at whether or not a change was seen (default 1 minute), Quiet how long
	// they must be left alone after a change before they are read (default 100 ms).
	Poll, Quiet time.Duration
	// Log is told of new credentials and of those that cannot be used.
	Log *slog.Logger
}

// maxQuiet is for how many quiet times changes that never cease may hold a reading up.
const maxQuiet = 20

// Watcher knows all files with credentials. Its methods are safe for concurrent use.
type Watcher struct {
	options Options

	mu     sync.Mutex // guards what follows, and serializes readings
	values []refresher
	dirs   []string
}

// refresher is a Value of any type.
type refresher interface {
	// refresh reads the files again; changed tells whether their content did.
	refresh() (changed bool, err error)
	describe() string
}

// NewWatcher returns a Watcher without files. It reads none again before Run.
func NewWatcher(o Options) *Watcher {
	if o.Reloaded == nil {
		o.Reloaded = func(bool) {}
	}
	if o.Poll <= 0 {
		o.Poll = time.Minute
	}
	if o.Quiet <= 0 {
		o.Quiet = 100 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{options: o}
}

// add keeps a value up to date from now on.
func (w *Watcher) add(r refresher, files []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values = append(w.values, r)
	for _, f := range files {
		if dir := filepath.Dir(f); !slices.Contains(w.dirs, dir) {
			w.dirs = append(w.dirs, dir)
		}
	}
}

// Reload reads all files again, as Run does when they have changed.
func (w *Watcher) Reload() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.values {
		switch changed, err := v.refresh(); {
		case !changed:
		case err != nil:
			w.options.Log.Error("new credentials cannot be used, those before stay in use", "of", v.describe(), "error", err)
			w.options.Reloaded(false)
		default:
			w.options.Log.Info("new credentials are in use", "of", v.describe())
			w.options.Reloaded(true)
		}
	}
}

// Run keeps all values up to date until ctx is done. Directories are watched, not files: those are replaced, and where a
// Secret is mounted they are links that are swapped all at once.
func (w *Watcher) Run(ctx context.Context) {
	var events chan fsnotify.Event
	var problems chan error
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.options.Log.Warn("the files with credentials cannot be watched, they are only polled", "error", err, "period", w.options.Poll)
	} else {
		defer func() { _ = notify.Close() }() // nothing is left to do with an error
		events, problems = notify.Events, notify.Errors
	}
	poll := time.NewTicker(w.options.Poll)
	defer poll.Stop()
	w.watch(notify)
	w.Reload() // what changed between the first reading and the watching
	quiet := time.NewTimer(w.options.Poll)
	quiet.Stop()
	var first time.Time // of the changes that wait to be read
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			if event.Op == fsnotify.Chmod {
				continue
			}
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			quiet.Reset(min(w.options.Quiet, max(0, first.Add(maxQuiet*w.options.Quiet).Sub(now))))
			continue
		case err := <-problems:
			w.options.Log.Warn("watching the files with credentials failed, they are read now", "error", err)
		case <-quiet.C:
		case <-poll.C:
		}
		first = time.Time{}
		w.watch(notify)
		w.Reload()
	}
}

// watch watches the directories of all files. One that was removed and made again is watched anew.
func (w *Watcher) watch(notify *fsnotify.Watcher) {
	if notify == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	active := notify.WatchList()
	for _, dir := range w.dirs {
		if slices.Contains(active, dir) {
			continue
		}
		if err := notify.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.options.Log.Warn("a directory with credentials cannot be watched, it is only polled", "directory", dir, "error", err)
		}
	}
}
