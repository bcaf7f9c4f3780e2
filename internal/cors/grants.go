package cors

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/admission-gateway/gateway/internal/message"
)

// The bounds of what is remembered of one backend, and of what it is asked.
const (
	maxGranted = 4096
	maxRefused = 1024
	maxPlace   = 128 // bytes

	grantedFor = time.Hour
	refusedFor = 5 * time.Minute
	failedFor  = 10 * time.Second

	// askedPerSecond bounds the questions: clients that are refused must not make the gateway flood the backend.
	askedPerSecond = 20
)

// A Preflight is a preflight that a browser could send for a request.
type Preflight struct {
	Head   *message.Head // of the request
	Origin string
	Target string // that the backend gets
	Host   string // that the backend gets in place of the client's; "" leaves it
}

// An Ask sends a question to the backend within a short time. The answer is its head.
type Ask func(q *Preflight) (*message.Response, error)

// Grants remembers which origins may read a backend's answers, as the backend itself has said within the last hour. Nil
// Grants do nothing. They are safe for concurrent use.
type Grants struct {
	mu      sync.Mutex
	granted *simplelru.LRU[key, remembered]
	// refused are apart, so that made-up origins displace no grant.
	refused *simplelru.LRU[key, time.Time] // until when
	asking  map[key]chan struct{}          // closed when the answer has come
	second  time.Time                      // in which asked questions were asked
	asked   int
}

// A key is an origin at a place of an API.
type key struct{ place, origin string }

// A remembered grant counts until a time.
type remembered struct {
	*grant
	until time.Time
}

// NewGrants returns a memory of grants that is empty.
func NewGrants() *Grants {
	granted, _ := simplelru.NewLRU[key, remembered](maxGranted, nil) // fails for sizes below 1 alone
	refused, _ := simplelru.NewLRU[key, time.Time](maxRefused, nil)
	return &Grants{granted: granted, refused: refused, asking: map[key]chan struct{}{}}
}

// Note remembers what an answer of the backend grants. The place is a path template, or the start of a path.
func (s *Grants) Note(head *message.Head, place string, r *message.Response, now time.Time) {
	if s == nil {
		return
	}
	if origin := originOf(head); origin != "" {
		s.note(origin, place, r, now)
	}
}

// note reports whether the answer grants anything.
func (s *Grants) note(origin, place string, r *message.Response, now time.Time) bool {
	granted := string(r.Header(allowOrigin))
	if granted != origin && granted != everyone {
		return false
	}
	hasCredentials := string(r.Header(allowCredentials)) == "true" && granted != everyone
	list := strings.Join(r.Headers(exposeHeaders), ", ")
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{clip(place), granted}
	known, found := s.granted.Get(k)
	if list == "" && found {
		list = known.exposed // a preflight does not say what is exposed
	}
	if !found || known.hasCredentials != hasCredentials || known.exposed != list {
		known.grant = newGrant(granted, hasCredentials, list)
	}
	known.until = now.Add(grantedFor)
	if !found {
		k.place = strings.Clone(k.place)
	}
	s.granted.Add(k, known)
	return true
}

func clip(place string) string { return place[:min(len(place), maxPlace)] }

// find returns what is remembered for an origin. isKnown is set also if nothing is granted.
func (s *Grants) find(origin, place string, now time.Time) (g *grant, isKnown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place = clip(place)
	for _, one := range [...]string{origin, everyone} {
		if found, ok := s.granted.Get(key{place, one}); ok && now.Before(found.until) {
			return found.grant, true
		}
	}
	until, found := s.refused.Get(key{place, origin})
	return nil, found && now.Before(until)
}

// Share lets the script that a request came from read the gateway's own answer to it, if the backend lets it
// read its answers. What is not known yet is asked once.
func (s *Grants) Share(head *message.Head, place string, r *message.Response, ask Ask) {
	if s == nil {
		return
	}
	origin := originOf(head)
	if origin == "" {
		return
	}
	g, isKnown := s.find(origin, place, time.Now())
	if !isKnown && !IsPreflight(head) {
		g = s.learn(&Preflight{Head: head, Origin: origin}, place, ask)
	}
	if g != nil {
		g.addTo(r)
	}
}

// ShareKnown does so from what is known, and asks nothing.
func (s *Grants) ShareKnown(head *message.Head, place string, r *message.Response) {
	if s == nil {
		return
	}
	if g, _ := s.find(originOf(head), place, time.Now()); g != nil {
		g.addTo(r)
	}
}

// learn asks the backend, or waits for the answer to the same question of another request.
func (s *Grants) learn(q *Preflight, place string, ask Ask) *grant {
	k := key{strings.Clone(clip(place)), q.Origin}
	done, isFirst := s.begin(k)
	if done == nil {
		return nil
	}
	if isFirst {
		s.ask(q, k, ask, done)
	} else {
		<-done
	}
	g, _ := s.find(q.Origin, place, time.Now())
	return g
}

// begin returns a channel that is closed when the answer has come, and whether the caller has to
// ask; nil if too much was asked within this second.
func (s *Grants) begin(k key) (done chan struct{}, isFirst bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.asking[k]; done != nil {
		return done, false
	}
	if now := time.Now(); now.Sub(s.second) >= time.Second {
		s.second, s.asked = now, 0
	}
	if s.asked++; s.asked > askedPerSecond {
		return nil, false
	}
	done = make(chan struct{})
	s.asking[k] = done
	return done, true
}

// ask asks the backend and remembers what it says, a refusal too.
func (s *Grants) ask(q *Preflight, k key, ask Ask, done chan struct{}) {
	defer func() {
		s.mu.Lock()
		delete(s.asking, k)
		s.mu.Unlock()
		close(done)
	}()
	r, err := ask(q)
	remember := refusedFor
	switch {
	case err != nil:
		remember = failedFor
	case r.Status() < 300 && s.note(q.Origin, k.place, r, time.Now()):
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused.Add(k, time.Now().Add(remember))
}
