package linewriter

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// short takes so many bytes, and then none until it is nil again.
type short struct {
	bytes.Buffer
	room int
	err  error
}

func (s *short) Write(p []byte) (int, error) {
	if s.err == nil {
		return s.Buffer.Write(p)
	}
	n, _ := s.Buffer.Write(p[:min(s.room, len(p))])
	s.room -= n
	return n, s.err
}

// TestPartOfLine: what gives nothing back has the part of a line as a line of its own, and the whole one after it.
func TestPartOfLine(t *testing.T) {
	to := &short{room: 5, err: syscall.EPIPE}
	w := New(to, false)
	if kept, err := w.Write([]byte("a\nbcde\n")); kept != 2 || !errors.Is(err, syscall.EPIPE) {
		t.Fatal(kept, err)
	}
	if kept, err := w.Write([]byte("bcde\n")); kept != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Fatal(kept, err)
	}
	to.err = nil
	if kept, err := w.Write([]byte("bcde\n")); kept != 5 || err != nil {
		t.Fatal(kept, err)
	}
	if got := to.String(); got != "a\nbcd\nbcde\n" {
		t.Errorf("written is %q", got)
	}
}

// TestFullFile: on a full disk a file has whole lines at every moment, whether it is appended to or written from its
// start, and nothing of what another process appended is lost.
func TestFullFile(t *testing.T) {
	for name, flag := range map[string]int{"appended": os.O_APPEND, "written": 0} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.SmallDisk(t, 64<<10)
			filler := testutil.FillDisk(t, dir)
			if err := os.Truncate(filler, 40<<10); err != nil { // room for a part of the lines
				t.Fatal(err)
			}
			f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|flag, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			line := strings.Repeat("x", 999) + "\n"
			w, rest, isTorn := New(f, false), []byte(strings.Repeat(line, 50)), false
			for len(rest) > 0 {
				kept, err := w.Write(rest)
				if rest = rest[kept:]; err == nil {
					continue
				}
				if !errors.Is(err, syscall.ENOSPC) || isTorn {
					t.Fatalf("the error is %v", err)
				}
				text, err := os.ReadFile(f.Name())
				if err != nil || strings.Trim(string(text), line) != "" || len(text) == 0 || len(text)%len(line) != 0 {
					t.Errorf("on the full disk the file has %d bytes, which are no whole lines: %v", len(text), err)
				}
				isTorn = true
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(f.Name())
			if !isTorn || string(text) != strings.Repeat(line, 50) {
				t.Errorf("in the end the file has %d bytes, and a write failed is %v: %v", len(text), isTorn, err)
			}
		})
	}
}

// TestPartThatStays: a part of a line after which another process wrote is ended, and not taken out.
func TestPartThatStays(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString("a\npart"); err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(f.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.WriteString("of another\n"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := retract(f, 4); !errors.Is(err, errNotLast) {
		t.Errorf("taken out: %v", err)
	}
	if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "a\npartof another\n" {
		t.Errorf("the file has %q: %v", text, err)
	}
}
