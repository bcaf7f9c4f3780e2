// Package linewriter writes whole lines to files and pipes: a write that the system takes only a part of leaves no part
// of a line in a file.
package linewriter

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// A Writer appends whole lines. It is for one goroutine.
type Writer struct {
	to io.Writer
	// hasPart says that what was written so far ends with a part of a line.
	hasPart bool
}

// New returns a writer to w, whose last line may not be whole: then it is ended before the next one.
func New(w io.Writer, hasPart bool) *Writer { return &Writer{to: w, hasPart: hasPart} }

// Write writes lines, and returns how many bytes of whole lines are written for good; the rest has to be written again.
//
// If a full disk takes a part of a line, that part is taken out of the file again. A pipe gives nothing back: the next
// write ends that line, and then has the whole one.
func (w *Writer) Write(lines []byte) (kept int, err error) {
	if w.hasPart {
		if _, err := w.to.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		w.hasPart = false
	}
	n, err := w.to.Write(lines)
	if err == nil {
		return n, nil
	}
	kept = bytes.LastIndexByte(lines[:n], '\n') + 1
	if part := n - kept; part > 0 {
		w.hasPart = retract(w.to, int64(part)) != nil
	}
	return kept, err
}

// errNotLast is the error of bytes that cannot be taken back, because they are not the last ones of a file.
var errNotLast = errors.New("these are not the last bytes of a file")

// retract takes the last bytes out of a file that this process wrote. If another process has appended since, or
// truncated the file, they stay.
func retract(to io.Writer, bytes int64) error {
	f, isFile := to.(*os.File)
	if !isFile {
		return errNotLast
	}
	end, err := f.Seek(0, io.SeekCurrent) // where the last write ended, also of a file that is only appended to
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != end || end < bytes {
		return errNotLast
	}
	if err := f.Truncate(end - bytes); err != nil {
		return err
	}
	_, err = f.Seek(end-bytes, io.SeekStart)
	return err
}
