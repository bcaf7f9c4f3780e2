// Package watch reports when files may have changed. Directories are watched, not files: those are
// replaced, by editors and by the kubelet, which swaps the links to all files of a mount at once,
// and a watch on a file ends with it.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Files are the files to watch.
type Files struct {
	// Of names them in the log, such as "the policy files".
	Of string
	// Dirs are the directories that they are in now. One that was removed and made again is watched anew.
	Dirs func() []string
	// Changed reads them: once at the start, soon after a change, and at every poll in case a
	// change went unnoticed (network file systems send no events).
	Changed func()
	// Poll is the time between polls, Quiet how long the files must be left alone after a change before they are read,
	// Patience the longest that changes that never cease hold a reading up.
	Poll, Quiet, Patience time.Duration
	Log                   *slog.Logger
}

// Run watches until ctx is done.
func (f *Files) Run(ctx context.Context) {
	w := f.newWatcher()
	defer w.close()
	poll := time.NewTicker(f.Poll)
	defer poll.Stop()
	w.update()
	f.Changed() // what changed between the first reading and the watching
	quiet := time.NewTimer(f.Poll)
	quiet.Stop()
	var first time.Time // of the changes that wait to be read
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-w.events:
			if !open {
				w.events = nil
				continue
			}
			if event.Op == fsnotify.Chmod {
				continue
			}
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			quiet.Reset(min(f.Quiet, max(0, first.Add(f.Patience).Sub(now))))
			continue
		case err, open := <-w.errors:
			if !open {
				w.errors = nil
				continue
			}
			f.Log.Warn("watching "+f.Of+" failed, they are read now", "error", err)
		case <-quiet.C:
		case <-poll.C:
		}
		first = time.Time{}
		w.update() // before the reading, so that nothing happens unseen between
		f.Changed()
		w.update() // which may have found other directories
	}
}

// watcher is the system's watch on the directories.
type watcher struct {
	files  *Files
	notify *fsnotify.Watcher // nil if there can be none
	events chan fsnotify.Event
	errors chan error
	dirs   []string
}

func (f *Files) newWatcher() *watcher {
	w := &watcher{files: f}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		f.Log.Warn(f.Of+" cannot be watched, they are only polled", "error", err, "period", f.Poll)
		return w
	}
	w.notify, w.events, w.errors = notify, notify.Events, notify.Errors
	return w
}

// update watches exactly the directories that there are now.
func (w *watcher) update() {
	if w.notify == nil {
		return
	}
	dirs, active := w.files.Dirs(), w.notify.WatchList()
	for _, dir := range active {
		if !slices.Contains(dirs, dir) {
			if err := w.notify.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
				w.files.Log.Debug("a directory is still watched", "directory", dir, "error", err)
			}
		}
	}
	for _, dir := range dirs {
		if slices.Contains(active, dir) {
			continue
		}
		if err := w.notify.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !slices.Contains(w.dirs, dir) {
			w.files.Log.Warn("a directory of "+w.files.Of+" cannot be watched, it is only polled", "directory", dir, "error", err)
		}
	}
	w.dirs = slices.Clone(dirs)
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing is left to do with an error
	}
}
