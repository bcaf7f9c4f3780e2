// Package reuse lets a set of policies share what did not change with the previous set. Whatever is
// compiled has a key of all that it is compiled from; what had the same key in the set before is
// taken from there. A value that is kept must be immutable, for the set before goes on using it.
package reuse

import (
	"sync"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// A Store has what one set was compiled from, by keys. As in a context, the type of a key says what it is the key of.
// Several goroutines may use it. If two of them make the value of one key at once, both make it.
type Store struct {
	mu          sync.Mutex
	before, now map[any]any
}

// After returns a store for a set that may share what the set of another store has; nil: it shares nothing.
func After(before *Store) *Store {
	if before == nil {
		return &Store{now: map[any]any{}}
	}
	return &Store{before: before.now, now: make(map[any]any, len(before.now))}
}

// Close releases what the previous set had and this one does not.
func (s *Store) Close() { s.before = nil }

// Find returns the value of a key, in this set or in the one before, and keeps it.
func Find[V any, K comparable](s *Store, key K) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.now[key].(V)
	if !ok {
		if v, ok = s.before[key].(V); ok {
			s.now[key] = v
		}
	}
	return v, ok
}

// Keep keeps the value of a key.
func Keep[V any, K comparable](s *Store, key K, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[key] = v
}

// Of returns the value of a key, which is made if there is none.
func Of[V any, K comparable](s *Store, key K, make func() V) V {
	v, ok := Find[V](s, key)
	if !ok {
		v = make()
		Keep(s, key, v)
	}
	return v
}

// An Object is the key of a step's result for an object.
type Object struct {
	Step string
	Sum  manifest.Sum
	// With is all else that the step looks at, as far as it may change: pointers to what is kept, names.
	With any
}

// made is what a step made of an object, and what it found, when the object began at a line of a file.
type made[V any] struct {
	value V
	found []finding.Finding
	file  string
	line  int
}

// OfObject returns what a step makes of an object, and adds to the list what is found in it. with must be comparable.
func OfObject[V any](s *Store, l *finding.List, o *manifest.Object, step string, with any,
	make func(*finding.List) V) V {
	key, line := Object{step, o.Sum(), with}, o.Line("")
	m := Of(s, key, func() made[V] {
		var found finding.List
		v := make(&found)
		return made[V]{v, found.Found, o.File, line}
	})
	for _, f := range m.found {
		if f.File == m.file { // else it is in another file of which the object was assembled
			f.File = o.File
			if f.Line > 0 {
				f.Line += line - m.line
			}
		}
		l.Found = append(l.Found, f)
	}
	return m.value
}
