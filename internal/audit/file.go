package audit

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/admission-gateway/gateway/internal/linewriter"
)

// A FileOptions says where events go, and how long they are kept.
type FileOptions struct {
	// Path is the file; "-" is standard output, which is never rotated.
	Path string
	// MaxSize is at how many bytes the file is rotated, in whole megabytes.
	MaxSize int
	// MaxBackups is how many rotated files are kept; 0 keeps all. MaxAge is for how many days; 0 keeps
	// them for good.
	MaxBackups, MaxAge int
	// Compress compresses rotated files with gzip.
	Compress bool
}

const megabyte = 1 << 20

// A file is a sink that appends to a file and rotates it. Others may rotate it too: a file that was renamed, removed
// or truncated is opened again before the next write.
type file struct {
	path  string             // empty for standard output
	old   *lumberjack.Logger // renames what is full, and removes and compresses what was renamed
	limit int64              // bytes at which the file is rotated
	most  int                // bytes of one write

	to      *os.File // nil until the next write opens it
	lines   *linewriter.Writer
	size    int64     // after the last write
	rotated time.Time // when it last was
	reopen  atomic.Bool
}

// OpenFile returns a sink that appends to a file. It is an error if the file cannot be written. A named pipe may have
// no reader yet.
func OpenFile(o FileOptions) (Sink, error) {
	if o.Path == "-" {
		return &file{to: os.Stdout, lines: linewriter.New(os.Stdout, false), most: megabyte}, nil
	}
	size := max(1, o.MaxSize/megabyte)
	f := &file{
		path: o.Path, limit: int64(size) * megabyte, most: megabyte,
		old: &lumberjack.Logger{
			Filename: o.Path, MaxSize: size, MaxBackups: o.MaxBackups, MaxAge: o.MaxAge, Compress: o.Compress,
			LocalTime: false,
		},
	}
	if _, err := os.Stat(filepath.Dir(o.Path)); err != nil {
		return nil, err // a folder is made only in place of one that was removed
	}
	if err := f.open(); err != nil && !hasNoReader(o.Path, err) {
		return nil, err
	}
	return f, nil
}

// hasNoReader reports whether an error of opening is that nothing reads a named pipe.
func hasNoReader(path string, err error) bool {
	info, unknown := os.Stat(path)
	return errors.Is(err, syscall.ENXIO) && unknown == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// open opens the file to append, and creates it if need be. To open a named pipe that nothing reads is an error, and
// does not wait.
func (f *file) open() error {
	if isRotated(f.path) {
		// Whatever is too old is removed when a file is opened.
		if _, err := f.old.Write(nil); err != nil {
			return err
		}
		if err := f.old.Close(); err != nil {
			return err
		}
	}
	to, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0o600)
	if err != nil {
		return err
	}
	info, err := to.Stat()
	if err != nil {
		return errors.Join(err, to.Close())
	}
	f.to, f.lines, f.size = to, linewriter.New(to, endsWithin(f.path, info)), info.Size()
	return nil
}

// isRotated reports whether a file of that name is rotated: a pipe or a device never is.
func isRotated(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return info.Mode().IsRegular() && !strings.HasPrefix(path, "/dev/") // as /dev/stdout is if that is a file
}

// endsWithin reports whether a file ends with a part of a line, as a process leaves it that is killed while the disk is
// full.
func endsWithin(path string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false // it may be written and not read
	}
	defer func() { _ = f.Close() }() // it was only read
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}

func (f *file) Name() string { return "log" }

// Write writes whole lines, at most a megabyte at once, so that the file is rotated between lines. A write to a pipe
// that nothing reads ends with the context.
func (f *file) Write(ctx context.Context, all []byte) (kept int, err error) {
	for kept < len(all) {
		part := all[kept:]
		part = part[:wholeLines(part, f.most)]
		if err := f.prepare(int64(len(part))); err != nil {
			return kept, err
		}
		to := f.to
		// files have none, and never wait
		stop := context.AfterFunc(ctx, func() { _ = to.SetWriteDeadline(time.Now()) })
		n, err := f.lines.Write(part)
		stop()
		if info, err := to.Stat(); err == nil {
			f.size = info.Size()
		}
		if kept += n; err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// prepare opens the file for a write of so many bytes: again if its path leads to another one by now, or if it was
// truncated, and a new one if it would be too large.
func (f *file) prepare(bytes int64) error {
	if f.path == "" {
		return nil
	}
	if f.to != nil && (f.reopen.Swap(false) || f.isOther()) {
		if err := f.Close(); err != nil {
			return err
		}
	}
	if f.to == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size == 0 || f.size+bytes <= f.limit || !isRotated(f.path) {
		return nil
	}
	time.Sleep(time.Until(f.rotated.Add(2 * time.Millisecond))) // rotated files are named by it
	err := errors.Join(f.Close(), f.old.Rotate(), f.old.Close())
	if f.rotated = time.Now(); err != nil {
		return err
	}
	return f.open()
}

// isOther reports whether others have rotated the file.
func (f *file) isOther() bool {
	ours, err := f.to.Stat()
	if err != nil {
		return true
	}
	now, err := os.Stat(f.path)
	return err != nil || !os.SameFile(now, ours) || now.Mode().IsRegular() && now.Size() < f.size
}

// Reopen has the file opened again before the next write.
func (f *file) Reopen() { f.reopen.Store(true) }

// wholeLines returns how many bytes at the start of lines are whole lines of at most limit bytes; at
// least one line.
func wholeLines(lines []byte, limit int) int {
	if len(lines) <= limit {
		return len(lines)
	}
	if i := bytes.LastIndexByte(lines[:limit], '\n'); i >= 0 {
		return i + 1
	}
	return bytes.IndexByte(lines, '\n') + 1
}

// Close closes the file. The next write opens it again.
func (f *file) Close() error {
	if f.path == "" || f.to == nil {
		return nil // others write to standard output too
	}
	to := f.to
	f.to, f.lines = nil, nil
	if err := to.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
