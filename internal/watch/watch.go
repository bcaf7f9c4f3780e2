// Package watch reports when files may have changed. Directories are watched, not files: those are
// replaced, by editors and by the kubelet, which swaps the links to all files of a mount at once,
// and a watch on a file ends with it.
package watch

import (
	"context"
	"log/slog"
	"time"
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
	// System watches the directories; nil: these files have one of their own.
	System *System
}

// Run watches until ctx is done.
func (f *Files) Run(ctx context.Context) {
	system := f.System
	if system == nil {
		system = &System{}
	}
	w := system.join(f)
	defer w.leave()
	poll := time.NewTicker(f.Poll)
	defer poll.Stop()
	w.read() // what changed between the first reading and the watching
	quiet := time.NewTimer(f.Poll)
	quiet.Stop()
	var first time.Time // of the changes that wait to be read
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.events:
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			quiet.Reset(min(f.Quiet, max(0, first.Add(f.Patience).Sub(now))))
			continue
		case err := <-w.errors:
			f.Log.Warn("watching "+f.Of+" failed, they are read now", "error", err)
		case <-quiet.C:
		case <-poll.C:
		}
		first = time.Time{}
		w.read()
	}
}

// maxReadings is how many readings one change leads to: each but the first is for directories that the one before
// found. If directories come faster, the next poll reads them.
const maxReadings = 4

// read reads the files, and watches the directories that they are in before it does, so that no change goes unseen. A
// reading may find other directories, in which files may have changed before they were watched: it reads once more.
func (m *member) read() {
	m.update()
	for range maxReadings {
		m.files.Changed()
		if !m.update() {
			return
		}
	}
}
