// Package file reads the files that an operator names. Only regular files are read, by way of links if need be: a named
// pipe, a socket or a device may have a reader wait for ever, and a gateway that waits no longer sees its policies
// change.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read returns the contents of a regular file of at most so many bytes, and what the file was like as it was opened.
// The error is a sentence without the file's name.
func Read(name string, maxBytes int64) ([]byte, fs.FileInfo, error) {
	f, info, err := open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	// A file may grow while it is read, or have another size than the system says.
	data := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxBytes)+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, maxBytes+1)); err != nil {
		return nil, nil, unreadable(err)
	}
	if int64(data.Len()) > maxBytes {
		return nil, nil, fmt.Errorf("must be at most %d bytes", maxBytes)
	}
	return data.Bytes(), info, nil
}

// Check returns why a file cannot be read, in the words of [Read], and nil if it can be.
func Check(name string) error {
	f, _, err := open(name)
	if err == nil {
		_ = f.Close() // nothing was read
	}
	return err
}

// open opens a regular file. The opening itself must not wait, and only what is open already can be relied on to be
// what it was found to be: names are given to other files at any time.
func open(name string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil, nil, irregular(fs.ModeSocket) // or a device that is not there
	}
	if err != nil {
		return nil, nil, unreadable(err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = unreadable(err)
	case !info.Mode().IsRegular():
		err = irregular(info.Mode())
	default:
		return f, info, nil
	}
	_ = f.Close() // nothing was read
	return nil, nil, err
}

func unreadable(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("may not be read: %w", err)
}

// irregular is the error of something that is no regular file.
func irregular(mode fs.FileMode) error {
	what := "a device"
	switch {
	case mode.IsDir():
		return errors.New("must be a file, not a directory")
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return fmt.Errorf("must be a regular file, or a link to one, not %s", what)
}
