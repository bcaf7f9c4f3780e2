package backend

import (
	"cmp"
	"container/list"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Errors of the store; the handler gives each its status code.
var (
	errExists   = errors.New("exists already")
	errMissing  = errors.New("does not exist")
	errMismatch = errors.New("the precondition does not hold")
	errFull     = errors.New("the store is full")
)

// object is one stored item. It never changes; a write replaces it.
type object struct {
	body []byte
	etag string
	age  *list.Element // of store.ages; its value is the object's target
}

type itemKey struct{ namespace, name string }

// A collection holds the objects of one kind, of all namespaces.
type collection struct {
	items    map[itemKey]*object
	version  uint64 // store.version of the last write to it
	watchers map[*watcher]struct{}
}

// store keeps all collections. Versions count its writes, so that no ETag is ever used twice.
type store struct {
	maxObjects int
	maxBytes   int64
	evict      bool

	mu          sync.RWMutex
	collections map[string]*collection
	version     uint64
	bytes       int64
	ages        *list.List // targets, the oldest object first
}

func newStore(maxObjects int, maxBytes int64, evict bool) *store {
	return &store{
		maxObjects: maxObjects, maxBytes: maxBytes, evict: evict,
		collections: make(map[string]*collection), ages: list.New(),
	}
}

func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ages.Len()
}

func (s *store) get(t target) (*object, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.collections[t.collection]; c != nil {
		o, ok := c.items[itemKey{t.namespace, t.name}]
		return o, ok
	}
	return nil, false
}

// list returns the objects of a collection by namespace and name, and its ETag.
func (s *store) list(t target) ([]*object, string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.collections[t.collection]
	if c == nil {
		return nil, etag(0)
	}
	return c.sorted(t.namespace), etag(c.version)
}

func (c *collection) sorted(namespace string) []*object {
	keys := make([]itemKey, 0, len(c.items))
	for k := range maps.Keys(c.items) {
		if namespace == "" || k.namespace == namespace {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b itemKey) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	objects := make([]*object, len(keys))
	for i, k := range keys {
		objects[i] = c.items[k]
	}
	return objects
}

// create stores a new object, or fails with errExists or errFull.
func (s *store) create(t target, body []byte) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[t.collection]; c != nil && c.items[itemKey{t.namespace, t.name}] != nil {
		return nil, errExists
	}
	return s.write(t, nil, body)
}

// put creates or replaces an object if the condition holds, or fails with errMismatch or errFull.
// It reports whether the object is new.
func (s *store) put(t target, body []byte, when condition) (o *object, created bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old *object
	if c := s.collections[t.collection]; c != nil {
		old = c.items[itemKey{t.namespace, t.name}]
	}
	if !when.allows(old) {
		return nil, false, errMismatch
	}
	o, err = s.write(t, old, body)
	return o, old == nil, err
}

// update replaces an object by what is made of it if the condition holds, or fails with errMissing, errMismatch,
// errFull or the error of made.
func (s *store) update(t target, when condition, made func(old []byte) ([]byte, error)) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old *object
	if c := s.collections[t.collection]; c != nil {
		old = c.items[itemKey{t.namespace, t.name}]
	}
	if old == nil {
		return nil, errMissing
	}
	if !when.allows(old) {
		return nil, errMismatch
	}
	body, err := made(old.body)
	if err != nil {
		return nil, err
	}
	return s.write(t, old, body)
}

// clear removes all objects of a collection.
func (s *store) clear(t target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[t.collection]
	if c == nil {
		return
	}
	for k := range c.items {
		if t.namespace == "" || k.namespace == t.namespace {
			s.remove(target{collection: t.collection, namespace: k.namespace, name: k.name})
		}
	}
}

// delete removes an object if the condition holds, or fails with errMissing or errMismatch.
func (s *store) delete(t target, when condition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[t.collection]
	if c == nil || c.items[itemKey{t.namespace, t.name}] == nil {
		if when.match != "" {
			return errMismatch
		}
		return errMissing
	}
	if !when.allows(c.items[itemKey{t.namespace, t.name}]) {
		return errMismatch
	}
	s.remove(t)
	return nil
}

// write stores the body in place of old, which is nil for a new object; s.mu is held.
func (s *store) write(t target, old *object, body []byte) (*object, error) {
	if int64(len(body)) > s.maxBytes {
		return nil, errFull
	}
	grows := int64(len(body))
	objects := s.ages.Len() + 1
	if old != nil {
		grows -= int64(len(old.body))
		objects--
	}
	for objects > s.maxObjects || s.bytes+grows > s.maxBytes {
		oldest := s.ages.Front()
		if !s.evict || oldest == nil || oldest.Value.(target) == t {
			return nil, errFull
		}
		s.remove(oldest.Value.(target))
		objects--
	}
	c := s.collection(t)
	s.version++
	c.version = s.version
	o := &object{body: body, etag: etag(s.version)}
	kind := eventModified
	if old != nil {
		o.age = old.age
	} else {
		kind = eventAdded
		o.age = s.ages.PushBack(t)
	}
	c.items[itemKey{t.namespace, t.name}] = o
	s.bytes += grows
	c.notify(kind, t.namespace, o)
	return o, nil
}

// remove drops an object that exists; s.mu is held.
func (s *store) remove(t target) {
	c := s.collections[t.collection]
	key := itemKey{t.namespace, t.name}
	o := c.items[key]
	delete(c.items, key)
	s.ages.Remove(o.age)
	s.bytes -= int64(len(o.body))
	s.version++
	c.version = s.version
	c.notify(eventDeleted, t.namespace, o)
	s.forgetEmpty(t, c)
}

// collection returns the collection of the target, made if need be; s.mu is held.
func (s *store) collection(t target) *collection {
	c := s.collections[t.collection]
	if c == nil {
		c = &collection{items: make(map[itemKey]*object), watchers: make(map[*watcher]struct{})}
		s.collections[t.collection] = c
	}
	return c
}

// forgetEmpty drops a collection with neither items nor watchers, so that collections need no limit of their own. Its
// version goes back to 0, which is right: an empty collection looks like one that never held anything. s.mu is held.
func (s *store) forgetEmpty(t target, c *collection) {
	if len(c.items) == 0 && len(c.watchers) == 0 {
		delete(s.collections, t.collection)
	}
}

// etag writes a version as a strong entity tag.
func etag(version uint64) string {
	b := make([]byte, 0, 22)
	b = append(b, '"')
	b = strconv.AppendUint(b, version, 10)
	return string(append(b, '"'))
}

// condition is a request's If-Match and If-None-Match; empty means not sent.
type condition struct{ match, noneMatch string }

// allows reports whether a write over old, which may be nil, may go on.
func (c condition) allows(old *object) bool {
	if c.match != "" && (old == nil || !matches(c.match, old.etag)) {
		return false
	}
	return c.noneMatch == "" || old == nil || !matches(c.noneMatch, old.etag)
}

// matches compares strongly: an entity tag marked as weak is equal to none.
func matches(header, etag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || one == etag {
			return true
		}
	}
	return false
}
