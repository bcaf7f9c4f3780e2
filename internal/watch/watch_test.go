package watch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

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
		Of: "the files", Dirs: func() []string { return []string{root, one, two} }, Changed: func() { changed <- struct{}{} },
		Poll: time.Hour, Quiet: time.Millisecond, Patience: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
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
