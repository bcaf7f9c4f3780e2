package watch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestIgnore: writes to a file that the process itself writes report no change of the files beside it, but all else
// about it does: another file may take its place.
func TestIgnore(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(root, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	system := &System{}
	system.Ignore(filepath.Join(link, "log"))
	files := Files{Of: "the files", Dirs: func() []string { return []string{root} }, Log: slog.New(slog.DiscardHandler)}
	m := system.join(&files)
	defer m.leave()
	m.update()
	changed := func(what string, want bool) {
		t.Helper()
		select {
		case <-m.events:
			if !want {
				t.Errorf("%s is a change", what)
			}
		case <-time.After(map[bool]time.Duration{true: 20 * time.Second, false: 200 * time.Millisecond}[want]):
			if want {
				t.Errorf("%s is no change", what)
			}
		}
	}
	for range 3 {
		if _, err := log.WriteString("line\n"); err != nil {
			t.Fatal(err)
		}
	}
	changed("a line", false)
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	changed("a file", true)
	if err := os.Rename(filepath.Join(root, "log"), filepath.Join(root, "log.old")); err != nil {
		t.Fatal(err)
	}
	changed("a new name", true)
}

// A change in a directory is reported, also in one that was removed and made again, and in one that
// is new.
func TestRun(t *testing.T) {
	root := t.TempDir()
	one, two := filepath.Join(root, "one"), filepath.Join(root, "two")
	if err := os.Mkdir(one, 0o700); err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1000)
	files := Files{
		Of: "the files", Dirs: func() []string { return []string{root, one, two} },
		Changed: func() { changed <- struct{}{} },
		Poll:    time.Hour, Quiet: time.Millisecond, Patience: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		files.Run(ctx)
	}()
	reported := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s was not told", what)
		}
		for { // one change may be reported more than once
			select {
			case <-changed:
			case <-time.After(100 * time.Millisecond):
				return
			}
		}
	}
	write := func(dir string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(time.Now().String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reported("the start")
	write(one)
	reported("a new file")
	write(one)
	reported("another content")
	if err := os.RemoveAll(one); err != nil {
		t.Fatal(err)
	}
	reported("the end of a directory")
	for _, dir := range []string{one, two} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		reported("a new directory")
		write(dir)
		reported("a file in a new directory")
	}
	cancel()
	<-ended
}

// TestSystem: files that share the system's watch are told of what concerns them, whatever the names of their
// directories, and the process has one watch.
func TestSystem(t *testing.T) {
	root := t.TempDir()
	one, two, link := filepath.Join(root, "one"), filepath.Join(root, "two"), filepath.Join(root, "link")
	for _, dir := range []string{one, two} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	var system System
	before := watches(t)
	type told struct {
		changed chan struct{}
		cancel  func()
		ended   chan struct{}
	}
	start := func(dirs ...string) told {
		ctx, cancel := context.WithCancel(t.Context())
		c := told{make(chan struct{}, 1000), cancel, make(chan struct{})}
		files := Files{
			Of: "the files", Dirs: func() []string { return dirs }, Changed: func() { c.changed <- struct{}{} },
			System: &system,
			Poll:   time.Hour, Quiet: time.Millisecond, Patience: 10 * time.Millisecond,
			Log: slog.New(slog.DiscardHandler),
		}
		go func() {
			defer close(c.ended)
			files.Run(ctx)
		}()
		<-c.changed // the start
		return c
	}
	all := []told{start(one), start(two), start(link), start(one, two)}
	if got := watches(t) - before; got != 1 {
		t.Errorf("the process has %d watches, want 1", got)
	}
	write := func(dir string, want ...bool) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(time.Now().String()), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, c := range all {
			if i >= len(want) || !want[i] {
				continue
			}
			select {
			case <-c.changed:
			case <-time.After(20 * time.Second):
				t.Errorf("the files %d are not told of %s", i, dir)
			}
		}
		time.Sleep(100 * time.Millisecond) // the same change may be reported more than once
		for i, c := range all {
			for len(c.changed) > 0 {
				if <-c.changed; i >= len(want) || !want[i] {
					t.Errorf("the files %d are told of %s", i, dir)
				}
			}
		}
	}
	write(one, true, false, true, true)
	write(two, false, true, false, true)
	leave := func(i int) {
		all[i].cancel()
		<-all[i].ended
	}
	leave(0)
	write(one, false, false, true, true)
	leave(3)
	leave(2)
	write(one)
	write(two, false, true)
	leave(1)
	if got := watches(t) - before; got != 0 {
		t.Errorf("the process has %d watches, want none", got)
	}
	all = []told{start(two)}
	write(two, true)
	leave(0)
}

// watches returns how many of the system's watches the process has.
func watches(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not show the files of a process")
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// TestNewDirectory: a file that changes after the reading that finds its directory, and before the directory is
// watched, is read without waiting for a poll.
func TestNewDirectory(t *testing.T) {
	root := t.TempDir()
	sub := filepath.Join(root, "sub")
	name := filepath.Join(sub, "file")
	read := make(chan string, 10)
	isFound := false
	files := Files{
		Of: "the files", Log: slog.New(slog.DiscardHandler), Poll: time.Hour, Quiet: time.Millisecond,
		Patience: time.Second,
		Dirs: func() []string {
			if isFound {
				return []string{root, sub}
			}
			return []string{root}
		},
		Changed: func() {
			text, err := os.ReadFile(name)
			if err != nil {
				return
			}
			read <- string(text)
			if !isFound {
				isFound = true
				if err := os.WriteFile(name, []byte("second"), 0o600); err != nil {
					t.Error(err)
				}
			}
		},
	}
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); files.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for _, want := range []string{"first", "second"} {
		select {
		case got := <-read:
			if got != want {
				t.Fatalf("read %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the %s text is not read", want)
		}
	}
}
