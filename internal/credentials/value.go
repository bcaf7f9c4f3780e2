package credentials

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/file"
)

// maxFile is how large a file may be, in bytes.
const maxFile = 4 << 20

// Value is a value that is made of a set of files, always all of it from one reading. Get is safe
// for concurrent use.
type Value[T any] struct {
	name  string
	files []string
	read  func(contents [][]byte) (T, error)

	sum     [sha256.Size]byte // of the contents that were read last, good or bad
	problem string            // why the files could not be read, the last time
	changed []func()
	current atomic.Pointer[T]
	expires atomic.Pointer[time.Time] // nil for no certificate
}

// Watch reads the files, makes a value of their contents, which come in the order of the files, and
// keeps it up to date. An empty name of a file means no content. The error names the file, or comes
// from read. The name identifies the value in logs.
func Watch[T any](w *Watcher, name string, files []string, read func(contents [][]byte) (T, error)) (*Value[T], error) {
	v := &Value[T]{name: name, files: files, read: read}
	if _, err := v.refresh(); err != nil {
		return nil, err
	}
	w.add(v, slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" }))
	return v, nil
}

// hold returns a value that never changes, made of contents that are in no files. The Watcher knows when they expire.
func hold[T any](w *Watcher, name string, value T, contents [][]byte) *Value[T] {
	v := &Value[T]{name: name}
	v.current.Store(&value)
	if at := firstExpiry(contents); !at.IsZero() {
		v.expires.Store(&at)
	}
	w.add(v, nil)
	return v
}

// Get returns the value of the last reading that was good.
func (v *Value[T]) Get() T { return *v.current.Load() }

// OnChange has f called after each change of the value. It must be called before the Watcher runs.
func (v *Value[T]) OnChange(f func()) { v.changed = append(v.changed, f) }

func (v *Value[T]) describe() string { return v.name }

// expiry implements refresher.
func (v *Value[T]) expiry() time.Time {
	if at := v.expires.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// firstExpiry returns when the first certificate of a file expires, the earliest of all files; zero for no certificate.
func firstExpiry(contents [][]byte) (first time.Time) {
	for _, text := range contents {
		block, _ := pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first.IsZero() || c.NotAfter.Before(first)) {
			first = c.NotAfter
		}
	}
	return first
}

// refresh implements refresher. What cannot be read counts as a change once, and is not reported
// again until it is another problem; nor is a value that was read and is no good.
func (v *Value[T]) refresh() (bool, error) {
	if v.read == nil {
		return false, nil
	}
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
	if at := firstExpiry(contents); !at.IsZero() {
		v.expires.Store(&at)
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
		content, _, err := file.Read(name, maxFile)
		if err != nil {
			return nil, fmt.Errorf("the file '%s' %w", name, err)
		}
		contents[i] = content
	}
	return contents, nil
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
