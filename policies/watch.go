package policies

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Run keeps the set up to date until ctx is done: soon after the files change, and at every poll in case a change
// went unnoticed (network file systems tell nothing).
func (m *Manager) Run(ctx context.Context) {
	w := m.newWatcher()
	defer w.close()
	poll := time.NewTicker(m.options.Poll)
	defer poll.Stop()
	w.update(m.watched())
	m.refresh(false) // what changed between the loading and the watching
	quiet := time.NewTimer(m.options.Poll)
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
			quiet.Reset(min(m.options.Quiet, max(0, first.Add(maxQuiet*m.options.Quiet).Sub(now))))
			continue
		case err, open := <-w.errors:
			if !open {
				w.errors = nil
				continue
			}
			m.options.Log.Warn("watching the policy files failed, they are read now", "error", err)
		case <-quiet.C:
		case <-poll.C:
		}
		first = time.Time{}
		m.refresh(false)
		w.update(m.watched())
	}
}

func (m *Manager) watched() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dirs
}

// watcher watches directories: files are replaced, by editors and by ConfigMap mounts, and a watch on a file ends
// with it.
type watcher struct {
	manager *Manager
	notify  *fsnotify.Watcher // nil if there can be none
	events  chan fsnotify.Event
	errors  chan error
	dirs    []string
}

func (m *Manager) newWatcher() *watcher {
	w := &watcher{manager: m}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		m.options.Log.Warn("the policy files cannot be watched, they are only polled", "error", err, "period", m.options.Poll)
		return w
	}
	w.notify, w.events, w.errors = notify, notify.Events, notify.Errors
	return w
}

// update watches exactly these directories. One that was removed and made again is watched anew.
func (w *watcher) update(dirs []string) {
	if w.notify == nil {
		return
	}
	active := w.notify.WatchList()
	for _, dir := range active {
		if !slices.Contains(dirs, dir) {
			if err := w.notify.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
				w.manager.options.Log.Debug("a directory is still watched", "directory", dir, "error", err)
			}
		}
	}
	for _, dir := range dirs {
		if slices.Contains(active, dir) {
			continue
		}
		if err := w.notify.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !slices.Contains(w.dirs, dir) {
			w.manager.options.Log.Warn("a directory of policy files cannot be watched, it is only polled", "directory", dir, "error", err)
		}
	}
	w.dirs = dirs
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing is left to do with an error
	}
}
