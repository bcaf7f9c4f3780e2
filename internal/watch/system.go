package watch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// A System is the operating system's watch on directories. All files of a process share one, for Linux lets a user have
// few of them, 128 by default. The zero value is ready for use.
type System struct {
	mu      sync.Mutex
	notify  *fsnotify.Watcher // nil if no file is watched
	members []*member
	own     []string // files that the process itself writes
}

// Ignore passes over writes to a file that the process itself writes, such as a log beside the configuration: they
// change no file that is read.
func (s *System) Ignore(file string) {
	dir, name := filepath.Split(file)
	if real, err := filepath.EvalSymlinks(filepath.Clean(dir)); err == nil {
		dir = real
	}
	real, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return // there is no such directory to watch either
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = append(s.own, real)
}

// isOwn reports whether an event is a write to a file that is ignored.
func (s *System) isOwn(e fsnotify.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.Op == fsnotify.Write && slices.Contains(s.own, e.Name)
}

// A member is one who watches.
type member struct {
	files  *Files
	system *System       // nil if there can be no watch
	events chan struct{} // has one if something may have changed
	errors chan error
	dirs   []string // what is watched, without links
}

// join begins to watch for files.
func (s *System) join(f *Files) *member {
	m := &member{files: f, events: make(chan struct{}, 1), errors: make(chan error, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notify == nil {
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			f.Log.Warn(f.Of+" cannot be watched, they are only polled", "error", err, "period", f.Poll)
			return m
		}
		s.notify = notify
		go s.pass(notify)
	}
	m.system, s.members = s, append(s.members, m)
	return m
}

// pass passes on what happens until the watch is closed.
func (s *System) pass(notify *fsnotify.Watcher) {
	for {
		select {
		case event, open := <-notify.Events:
			if !open {
				return
			}
			if event.Op != fsnotify.Chmod && !s.isOwn(event) {
				s.changed(event.Name)
			}
		case err, open := <-notify.Errors:
			if !open {
				return
			}
			s.failed(err)
		}
	}
}

// changed notes that something may have happened to a file, for those who watch its directory. A directory that has
// several names may be reported by one that no member has: then it means all of them.
func (s *System) changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	concerns := func(m *member) bool {
		return slices.Contains(m.dirs, name) || slices.Contains(m.dirs, filepath.Dir(name))
	}
	isKnown := slices.ContainsFunc(s.members, concerns)
	for _, m := range s.members {
		if !isKnown || concerns(m) {
			select {
			case m.events <- struct{}{}:
			default: // it is to look already
			}
		}
	}
}

// failed notes that events may have been lost.
func (s *System) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		select {
		case m.errors <- err:
		default: // it is to look already
		}
	}
}

// update watches exactly the directories that there are now. It reports whether one of them was not watched before.
func (m *member) update() (isNew bool) {
	if m.system == nil {
		return false
	}
	dirs := m.files.Dirs()
	s := m.system
	s.mu.Lock()
	defer s.mu.Unlock()
	before, active := m.dirs, s.notify.WatchList()
	m.dirs = nil
	for _, dir := range dirs {
		// The system knows one watch of a directory, whatever the names are by which it is reached.
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err == nil && !slices.Contains(active, real) {
			err = s.notify.Add(real)
			isNew = isNew || err == nil
		}
		switch {
		case err == nil:
			m.dirs = append(m.dirs, real)
		case !errors.Is(err, os.ErrNotExist) && !slices.Contains(before, dir):
			m.files.Log.Warn("a directory of "+m.files.Of+" cannot be watched, it is only polled", "directory", dir,
				"error", err)
			m.dirs = append(m.dirs, dir) // so that it is said once
		}
	}
	s.drop(m.files, before)
	return isNew
}

// drop ends the watch on those directories that no member watches.
func (s *System) drop(f *Files, dirs []string) {
	active := s.notify.WatchList()
	for _, dir := range dirs {
		isWatched := func(m *member) bool { return slices.Contains(m.dirs, dir) }
		if !slices.Contains(active, dir) || slices.ContainsFunc(s.members, isWatched) {
			continue
		}
		if err := s.notify.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
			f.Log.Debug("a directory is still watched", "directory", dir, "error", err)
		}
	}
}

// leave ends the watching. The system's watch ends with the last member.
func (m *member) leave() {
	s := m.system
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(other *member) bool { return other == m })
	if len(s.members) > 0 {
		s.drop(m.files, m.dirs)
		return
	}
	_ = s.notify.Close() // nothing is left to do with an error
	s.notify = nil
}
