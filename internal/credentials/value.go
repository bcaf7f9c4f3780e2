package credentials

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
)

// maxFile is how large a file may be, in bytes.
const maxFile = 4 << 20

// Value is what a set of files makes, always all of it from one reading. Get is safe for concurrent use.
type Value[T any] struct {
	name  string
	files []string
	read  func(contents [][]byte) (T, error)

	sum     [sha256.Size]byte // of the contents that were read last, good or bad
	problem string            // why the files could not be read, the last time
	changed []func()
	current atomic.Pointer[T]
}

// Watch reads the files, makes a value of their contents, which come in the order of the files, and keeps it up to date. An
// empty name of a file stands for no content. The error names the file, or is that of read. The name says in logs what it is.
func Watch[T any](w *Watcher, name string, files []string, read func(contents [][]byte) (T, error)) (*Value[T], error) {
	v := &Value[T]{name: name, files: files, read: read}
	if _, err := v.refresh(); err != nil {
		return nil, err
	}
	w.add(v, slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" }))
	return v, nil
}

// Get returns the value of the last reading that was good.
func (v *Value[T]) Get() T { return *v.current.Load() }

// OnChange has f called after each change of the value. It must be called before the Watcher runs.
func (v *Value[T]) OnChange(f func()) { v.changed = append(v.changed, f) }

func (v *Value[T]) describe() string { return v.name }

// refresh implements refresher. What cannot be read counts as a change once, and is not told again until it is another
// problem; nor is what was read and is no good.
func (v *Value[T]) refresh() (bool, error) {
	contents, err := readFiles(v.files)
	if err != nil {
		again := v.problem == err.Error()
		v.problem = err.Error()
		return !again, err
	}
	sum := sumOf(contents)
	v.problem = ""
	if v.current.Load() != nil && sum == v.sum {
		return false, nil
	}
	value, err := v.read(contents)
	v.sum = sum
	if err != nil {
		return true, err
	}
	v.current.Store(&value)
	for _, f := range v.changed {
		f()
	}
	return true, nil
}

func readFiles(files []string) ([][]byte, error) {
	contents := make([][]byte, len(files))
	for i, name := range files {
		if name == "" {
			continue
		}
		var err error
		if contents[i], err = readFile(name); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

func readFile(name string) ([]byte, error) {
	unreadable := func(err error) error {
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			err = path.Err
		}
		return fmt.Errorf("the file '%s' may not be read: %w", name, err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("the size of the file '%s' must be less than or equal to %d bytes", name, maxFile)
	}
	return b, nil
}

// sumOf is a hash of several contents: keys are not kept in memory longer than they must be.
func sumOf(contents [][]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, c := range contents {
		one := sha256.Sum256(c)
		_, _ = h.Write(one[:]) // a hash takes everything
	}
	h.Sum(sum[:0])
	return sum
}
