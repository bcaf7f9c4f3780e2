package backend

import (
	"bytes"
	"net/http"
)

// The types of events.
const (
	eventAdded    = "ADDED"
	eventModified = "MODIFIED"
	eventDeleted  = "DELETED"
)

// watcherBuffer is how many events may wait for a slow reader; one more and its stream is cut, so that it knows.
const watcherBuffer = 1024

type event struct {
	kind string
	body []byte
}

// watcher is one open stream of events.
type watcher struct {
	namespace string // empty for all
	events    chan event
}

// watch returns what a collection holds now and a watcher of what happens to it from then on.
func (s *store) watch(t target) ([]*object, *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t)
	w := &watcher{namespace: t.namespace, events: make(chan event, watcherBuffer)}
	c.watchers[w] = struct{}{}
	return c.sorted(t.namespace), w
}

// unwatch forgets a watcher; it may have been dropped already.
func (s *store) unwatch(t target, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[t.collection]; c != nil {
		delete(c.watchers, w)
		s.forgetEmpty(t, c)
	}
}

// notify hands an event to the watchers that it concerns; the store's lock is held. One that does not keep up loses its
// stream: its channel is closed.
func (c *collection) notify(kind, namespace string, o *object) {
	for w := range c.watchers {
		if w.namespace != "" && w.namespace != namespace {
			continue
		}
		select {
		case w.events <- event{kind, o.body}:
		default:
			close(w.events)
			delete(c.watchers, w)
		}
	}
}

// serveWatch streams one line for each event, sent as it happens: first the objects that exist, as ADDED.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, t target) {
	existing, watcher := s.store.watch(t)
	defer s.store.unwatch(t, watcher)

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	var line []byte
	send := func(kind string, body []byte) error {
		line = appendEvent(line[:0], kind, body)
		if _, err := w.Write(line); err != nil {
			return err
		}
		return flush()
	}
	if flush() != nil { // the head at once: a watch of an empty collection is an answer too
		return
	}
	for _, o := range existing {
		if send(eventAdded, o.body) != nil {
			return
		}
	}
	for {
		select {
		case e, open := <-watcher.events:
			if !open {
				panic(http.ErrAbortHandler) // a clean end would say that nothing was missed
			}
			if send(e.kind, e.body) != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.stop:
			return
		}
	}
}

// appendEvent writes one event as a line. Line breaks between an object's tokens become spaces; in strings JSON has
// none.
func appendEvent(line []byte, kind string, body []byte) []byte {
	line = append(line, `{"type":"`...)
	line = append(line, kind...)
	line = append(line, `","object":`...)
	if bytes.ContainsAny(body, "\r\n") {
		start := len(line)
		line = append(line, body...)
		for i := start; i < len(line); i++ {
			if line[i] == '\n' || line[i] == '\r' {
				line[i] = ' '
			}
		}
	} else {
		line = append(line, body...)
	}
	return append(line, "}\n"...)
}
