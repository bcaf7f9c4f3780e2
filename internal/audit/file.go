package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
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
	to      io.WriteCloser
	path    string // empty for a file that others cannot rotate
	most    int    // bytes of one write
	hasPart bool   // whether the file ends with a part of a line
	// seen is the file after the last write; nil if it is not known.
	seen   os.FileInfo
	reopen atomic.Bool
}

// OpenFile returns a sink that appends to a file. It is an error if the file cannot be written.
func OpenFile(o FileOptions) (Sink, error) {
	if o.Path == "-" {
		return &file{to: unclosed{os.Stdout}, most: megabyte}, nil
	}
	probe, err := os.OpenFile(o.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	return &file{
		path: o.Path,
		to: &lumberjack.Logger{
			Filename: o.Path, MaxSize: max(1, o.MaxSize/megabyte), MaxBackups: o.MaxBackups, MaxAge: o.MaxAge,
			Compress: o.Compress, LocalTime: false,
		},
		most: megabyte,
	}, nil
}

// unclosed is a writer that others use too.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func (f *file) Name() string { return "log" }

// Write writes whole lines, at most a megabyte at once, so that the file is rotated between lines. If an
// error leaves a part of a line, the next attempt ends that line before it writes the line again.
func (f *file) Write(_ context.Context, lines []byte) (kept int, err error) {
	if err := f.follow(); err != nil {
		return 0, err
	}
	defer f.look()
	if f.hasPart {
		if _, err := f.to.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		f.hasPart = false
	}
	for kept < len(lines) {
		part := lines[kept:]
		part = part[:wholeLines(part, f.most)]
		n, err := f.to.Write(part)
		if err != nil {
			whole := bytes.LastIndexByte(part[:n], '\n') + 1
			f.hasPart = n > whole
			return kept + whole, err
		}
		if kept += n; kept < len(lines) {
			time.Sleep(time.Millisecond) // rotated files are named by it
		}
	}
	return kept, nil
}

// Reopen has the file opened again before the next write.
func (f *file) Reopen() { f.reopen.Store(true) }

// follow closes the file if its path leads to another one by now, or if it was truncated. The next write opens it, and
// appends.
func (f *file) follow() error {
	if f.path == "" {
		return nil
	}
	isAsked, isOther := f.reopen.Swap(false), false
	if f.seen != nil {
		now, err := os.Stat(f.path)
		isOther = err != nil || !os.SameFile(now, f.seen) || now.Size() < f.seen.Size()
	}
	if isOther {
		f.hasPart = false
	}
	if isOther || isAsked {
		return f.to.Close()
	}
	return nil
}

// look notes which file was written to. A new one, after a rotation of our own, is closed: it is opened again to append,
// so that what others truncate stays without holes.
func (f *file) look() {
	if f.path == "" {
		return
	}
	before := f.seen
	f.seen, _ = os.Stat(f.path) // a file that is not there is opened again
	if before != nil && f.seen != nil && !os.SameFile(before, f.seen) {
		f.reopen.Store(true)
	}
}

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

func (f *file) Close() error {
	if err := f.to.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
