// Package credentials keeps credentials up to date with the files that hold them: certificates and
// their keys, certificate authorities, bearer tokens. Such files are replaced while the gateway
// runs, by the kubelet, by cert-manager or by hand. A file that cannot be used never replaces what
// was read before.
package credentials

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/watch"
)

// Options configure a Watcher. The zero value is useful.
type Options struct {
	// Reloaded learns of each new reading of files that have changed: whether it succeeded.
	Reloaded func(ok bool)
	// Poll is how often the files are looked at whether or not a change was seen (default 1 minute), Quiet how long
	// they must be left alone after a change before they are read (default 100 ms).
	Poll, Quiet time.Duration
	// Log reports new credentials and credentials that cannot be used.
	Log *slog.Logger
	// System watches the files; nil: the Watcher has a watch of its own.
	System *watch.System
}

// maxQuiet is for how many quiet times changes that never cease may hold a reading up.
const maxQuiet = 20

// Watcher knows all files with credentials. Its methods are safe for concurrent use.
type Watcher struct {
	options Options

	whole *Watcher // that this one is a part of; nil if it is none

	mu     sync.Mutex // guards what follows, and serializes readings
	values []watched
}

// watched is a value that is kept up to date.
type watched struct {
	refresher
	dirs []string // that its files are in
	part *Watcher // that has added it
}

// refresher is a Value of any type.
type refresher interface {
	// refresh reads the files again; changed reports whether their content did.
	refresh() (changed bool, err error)
	describe() string
	// expiry returns when the first of the value's certificates expires; zero for no certificate.
	expiry() time.Time
}

// Expiries returns when the certificates in the files expire, by the names of the values made of them.
func (w *Watcher) Expiries() map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]time.Time)
	for _, v := range w.values {
		at, name := v.expiry(), v.describe()
		if known, ok := all[name]; !at.IsZero() && (!ok || at.Before(known)) {
			all[name] = at
		}
	}
	return all
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

// Part returns a Watcher whose values are kept up to date with those of w, until the part is closed.
func (w *Watcher) Part() *Watcher {
	whole := w
	if w.whole != nil {
		whole = w.whole
	}
	return &Watcher{options: w.options, whole: whole}
}

// Close lets go of the values of a part. They keep what they have read.
func (w *Watcher) Close() {
	w.whole.mu.Lock()
	defer w.whole.mu.Unlock()
	w.whole.values = slices.DeleteFunc(w.whole.values, func(v watched) bool { return v.part == w })
}

// add keeps a value up to date from now on.
func (w *Watcher) add(r refresher, files []string) {
	v := watched{refresher: r, part: w}
	for _, f := range files {
		v.dirs = append(v.dirs, filepath.Dir(f))
	}
	if w.whole != nil {
		w = w.whole
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values = append(w.values, v)
}

// Reload reads all files again, as Run does when they have changed.
func (w *Watcher) Reload() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.values {
		done := watch.Overdue(func() {
			w.options.Log.Error("the files with credentials take too long to read, those before stay in use, and no others are read",
				"of", v.describe(), "longer than", watch.Patience)
			w.options.Reloaded(false)
		})
		changed, err := v.refresh()
		done()
		switch {
		case !changed:
		case err != nil:
			w.options.Log.Error("new credentials cannot be used, those before stay in use", "of", v.describe(), "error",
				err)
			w.options.Reloaded(false)
		default:
			w.options.Log.Info("new credentials are in use", "of", v.describe())
			w.options.Reloaded(true)
		}
	}
}

// Run keeps all values up to date until ctx is done.
func (w *Watcher) Run(ctx context.Context) {
	files := watch.Files{
		Of: "the files with credentials", Dirs: w.watchedDirs, Changed: w.Reload,
		Poll: w.options.Poll, Quiet: w.options.Quiet, Patience: maxQuiet * w.options.Quiet, Log: w.options.Log,
		System: w.options.System,
	}
	files.Run(ctx)
}

// watchedDirs returns the directories of all files.
func (w *Watcher) watchedDirs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var dirs []string
	for _, v := range w.values {
		dirs = append(dirs, v.dirs...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
