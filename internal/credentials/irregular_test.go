package credentials

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/watch"
)

// A named pipe in place of a file is refused at once, at the start and later, and what was read before stays in use.
func TestNamedPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(Options{})
	want := "the file '" + pipe + "' must be a regular file, or a link to one, not a named pipe"
	if _, err := text(w, pipe); err == nil || err.Error() != want {
		t.Errorf("at the start: %v, want %s", err, want)
	}
	file := credentialstest.WriteFile(t, dir, "a", []byte("one"))
	v, err := text(w, file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(pipe, file); err != nil {
		t.Fatal(err)
	}
	if w.Reload(); v.Get() != "one" {
		t.Errorf("beside a named pipe: %q", v.Get())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	credentialstest.WriteFile(t, dir, "a", []byte("two"))
	if w.Reload(); v.Get() != "two" {
		t.Errorf("once the pipe is gone: %q", v.Get())
	}
}

// A reading that takes longer than a minute is reported while it goes on.
func TestOverdue(t *testing.T) {
	file := credentialstest.WriteFile(t, t.TempDir(), "a", []byte("one"))
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var said []string
		began := time.Now()
		w := NewWatcher(Options{
			Reloaded: func(ok bool) { said = append(said, fmt.Sprintf("%s %t", time.Since(began), ok)) },
			Log:      slog.New(slog.NewTextHandler(&log, nil)),
		})
		takes := time.Duration(0)
		_, err := Watch(w, "the token", []string{file}, func([][]byte) (int, error) {
			time.Sleep(takes)
			return 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		takes = 2 * watch.Patience
		if err := os.WriteFile(file, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.Reload()
		if want := []string{"1m0s false", "2m0s true"}; !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
		if !strings.Contains(log.String(), "the files with credentials take too long to read") ||
			!strings.Contains(log.String(), `of="the token"`) {
			t.Errorf("the log says\n%s", &log)
		}
	})
}
