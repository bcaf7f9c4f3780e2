package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestWatch: a collection is listed once and then follows the changes (DEF-4).
func TestWatch(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	s.set("b", "2")
	source := sourceOf(Watch)
	m := managerOf(t, s, source)
	testutil.Becomes(t, "1 2", func() string { return values(m, source) })
	s.set("c", "3")
	s.set("a", "10")
	s.drop("b")
	testutil.Becomes(t, "10 3", func() string { return values(m, source) })
	if n := s.count("GET /things"); n != 1 {
		t.Errorf("listed %d times", n)
	}
	object, err := m.Find(context.Background(), source, "", "c")
	if err != nil || value(object) != "3" || text(object, "apiVersion")+text(object, "kind") != "" {
		t.Errorf("c is %v, %v", object, err)
	}
}

// TestItemsSayWhatTheyAre: a list's items have the kind that the list says they are of.
func TestItemsSayWhatTheyAre(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	source := sourceOf(Poll)
	m := managerOf(t, s, source)
	testutil.Becomes(t, "1", func() string { return values(m, source) })
	objects, _ := m.Objects(context.Background(), source, "")
	if got := text(objects[0], "apiVersion") + " " + text(objects[0], "kind"); got != "example.com/v1 Thing" {
		t.Errorf("the object is of %s", got)
	}
}

// TestViewStaysAsItIs: what a request has does not change under it.
func TestViewStaysAsItIs(t *testing.T) {
	s := newServer()
	for i := range 50 {
		s.set(fmt.Sprintf("t%02d", i), "old")
	}
	source := sourceOf(Watch)
	m := managerOf(t, s, source)
	testutil.Becomes(t, strings.TrimSpace(strings.Repeat("old ", 50)), func() string { return values(m, source) })
	before, err := m.Objects(context.Background(), source, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		s.drop(fmt.Sprintf("t%02d", 2*i))
		s.set(fmt.Sprintf("t%02d", 2*i+1), "new")
	}
	testutil.Becomes(t, strings.TrimSpace(strings.Repeat("new ", 25)), func() string { return values(m, source) })
	for _, o := range before {
		if value(o) != "old" {
			t.Fatalf("an object became %q", value(o))
		}
	}
}

// TestRelist: a watch that the backend cannot go on with begins with a list again.
func TestRelist(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	source := sourceOf(Watch)
	m := managerOf(t, s, source)
	testutil.Becomes(t, "1", func() string { return values(m, source) })
	s.forget()
	s.set("a", "2")
	testutil.Becomes(t, "2", func() string { return values(m, source) })
	if n := s.count("GET /things"); n < 2 {
		t.Errorf("listed %d times", n)
	}
}

// TestOutage: what was known stays known for as long as the source allows, and comes up to date when the backend is
// back.
func TestOutage(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	source, strict, lenient := sourceOf(Watch), sourceOf(Watch), sourceOf(Watch)
	strict.Name, strict.MaxStaleness = "strict", time.Nanosecond
	lenient.Name, lenient.MaxStaleness, lenient.Skip = "lenient", time.Nanosecond, true
	m := managerOf(t, s, source, strict, lenient)
	testutil.Becomes(t, "1", func() string { return values(m, strict) })
	s.cut()
	testutil.Becomes(t, "the state 'strict' is stale: it was last known 0 seconds ago: the backend cannot be reached", func() string { return values(m, strict) })
	if got := values(m, source); got != "1" {
		t.Errorf("the source that allows it is %s", got)
	}
	if _, err := m.Objects(context.Background(), lenient, ""); !errors.Is(err, cel.ErrSkip) {
		t.Errorf("the source that says to skip gives %v", err)
	}
	s.break_(nil)
	s.set("a", "2")
	testutil.Becomes(t, "2", func() string { return values(m, strict) })
	if n := s.count("GET /things"); n != 1 {
		t.Errorf("listed %d times though the watch could go on", n)
	}
}

// TestBeforeTheFirstReading: nothing is known, and why is said.
func TestBeforeTheFirstReading(t *testing.T) {
	source, skip := sourceOf(Watch), sourceOf(Watch)
	skip.Skip = true
	for _, c := range []struct {
		name   string
		break_ func(*server)
		want   string
	}{
		{"down", func(s *server) { s.break_(errors.New("the backend cannot be reached")) },
			"the state 'things' has not been read yet: the backend cannot be reached"},
		{"forbidden", func(s *server) { s.code = 403 },
			"the state 'things' has not been read yet: the backend answered 403 Forbidden"},
		{"absent", func(s *server) { s.code = 404 },
			"the state 'things' has not been read yet: the backend answered 404 Not Found"},
		{"not JSON", func(s *server) { s.raw = "<html>" },
			"the state 'things' has not been read yet: the backend's answer cannot be read"},
		{"no list", func(s *server) { s.raw = `{"kind":"Thing"}` },
			"the state 'things' has not been read yet: the backend's answer cannot be read"},
		{"nothing to watch from", func(s *server) { s.raw = `{"items":[]}` }, ""},
		{"too many", func(s *server) {
			for i := range 101 {
				s.set(fmt.Sprint(i), "x")
			}
		}, "the state 'things' has not been read yet: there is more of it than the gateway may keep"},
		{"too large", func(s *server) { s.set("a", strings.Repeat("x", 1<<20)) },
			"the state 'things' has not been read yet: too large to be read whole"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer()
			c.break_(s)
			m := managerOf(t, s, source, skip)
			testutil.Becomes(t, c.want, func() string { return values(m, source) })
			if c.want != "" {
				if _, err := m.Objects(context.Background(), skip, ""); !errors.Is(err, cel.ErrSkip) {
					t.Errorf("the source that says to skip gives %v", err)
				}
			}
			testutil.Becomes(t, "<nil>", func() string { return fmt.Sprint(m.Synced()) })
		})
	}
	m, err := NewManager(Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Apply([]*Source{source})
	if got := values(m, source); got != "the state 'things' has not been read yet" {
		t.Errorf("a manager that was not started gives %s", got)
	}
}

// TestNothingToWatchFrom: a list without a version is known until it is stale, and the reason says what to do.
func TestNothingToWatchFrom(t *testing.T) {
	s := newServer()
	s.raw = `{"items":[{"value":"1"}]}`
	source := sourceOf(Watch)
	source.MaxStaleness = time.Nanosecond
	m := managerOf(t, s, source)
	testutil.Becomes(t, "the state 'things' is stale: it was last known 0 seconds ago: the list has no resourceVersion to watch from: state the mode 'Poll'",
		func() string { return values(m, source) })
}

// TestGrowsTooLarge: a collection that grows beyond its bounds while it is watched is not known in part.
func TestGrowsTooLarge(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	source := sourceOf(Watch)
	source.MaxObjects = 2
	m := managerOf(t, s, source)
	testutil.Becomes(t, "1", func() string { return values(m, source) })
	s.set("b", "2")
	s.set("c", "3")
	testutil.Becomes(t, "the state 'things' has not been read yet: there is more of it than the gateway may keep", func() string { return values(m, source) })
	s.drop("b")
	testutil.Becomes(t, "1 3", func() string { return values(m, source) })
}

// TestPoll: a collection without watches is listed again and again.
func TestPoll(t *testing.T) {
	s := newServer()
	s.plain, s.noWatch = true, true
	source := sourceOf(Poll)
	m := managerOf(t, s, source)
	testutil.Becomes(t, "", func() string { return values(m, source) })
	s.set("a", "1")
	testutil.Becomes(t, "1", func() string { return values(m, source) })
	s.drop("a")
	testutil.Becomes(t, "", func() string { return values(m, source) })
	if s.count("WATCH") != 0 || s.count("limit=") != 0 {
		t.Error("an ordinary API was asked in Kubernetes' ways")
	}
}

// TestNobodyToAsk: a source of an upstream that is not configured.
func TestNobodyToAsk(t *testing.T) {
	for _, mode := range []Mode{Watch, OnDemand} {
		source := sourceOf(mode)
		source.Upstream = "other"
		m := managerOf(t, newServer(), source)
		want := "the state 'things' has not been read yet: no upstream has the name 'other'"
		if mode == OnDemand {
			want = "the state 'things' cannot be read: no upstream has the name 'other'"
		}
		testutil.Becomes(t, want, func() string { return values(m, source) })
	}
}

// TestPages: a large list comes page by page, as one.
func TestPages(t *testing.T) {
	s := newServer()
	s.pageSize = 7
	var want []string
	for i := range 50 {
		s.set(fmt.Sprintf("t%02d", i), fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
	}
	source := sourceOf(Watch)
	m := managerOf(t, s, source)
	testutil.Becomes(t, strings.Join(want, " "), func() string { return values(m, source) })
	if n := s.count("GET /things?limit=500"); n != 8 {
		t.Errorf("%d pages", n)
	}
}

// TestForms: the forms in which APIs answer with lists.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		raw   string
		items []string
		want  string
	}{
		{`{"items":[{"value":"1"},{"value":"2"}]}`, nil, "1 2"},
		{`[{"value":"1"},{"value":"2"}]`, nil, "1 2"},
		{`{"items":null}`, nil, ""},
		{`{"data":{"all":[{"value":"1"}]}}`, []string{"data", "all"}, "1"},
		{`[{"value":"1"}]`, []string{}, "1"},
		{`{"data":{}}`, []string{"data", "all"},
			"the state 'things' cannot be read: the backend's answer cannot be read"},
		{`{"data":[1,1]`, nil, "the state 'things' cannot be read: the backend's answer cannot be read"},
	} {
		s := newServer()
		s.plain, s.raw = true, c.raw
		source := sourceOf(OnDemand)
		source.Items = c.items
		m := managerOf(t, s, source)
		if got := values(m, source); got != c.want {
			t.Errorf("%s: %s, want %s", c.raw, got, c.want)
		}
	}
}

// TestOnDemand: read when needed, once for all requests that need it at a time, and for as long as
// the source says.
func TestOnDemand(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	source := sourceOf(OnDemand)
	source.Path = "/in/{namespace}/things"
	m := managerOf(t, s, source)
	if s.count("") != 0 {
		t.Error("it was read before anything needed it")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := values(m, source); got != "1" {
				t.Errorf("got %s", got)
			}
		})
	}
	all.Wait()
	if n := s.count("GET /in/team-a/things"); n != 1 {
		t.Errorf("read %d times", n)
	}
	source.TTL = time.Nanosecond
	again := managerOf(t, s, source)
	for range 3 {
		_ = values(again, source)
	}
	if n := s.count("GET /in/team-a/things"); n != 4 {
		t.Errorf("read %d times where nothing is kept", n-1)
	}
}

// TestReload: a collection that is still read goes on as it is; one that no policy reads any more ends.
func TestReload(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	one, two := sourceOf(Watch), sourceOf(Watch)
	two.Path = "/others"
	m := managerOf(t, s, one, two)
	testutil.Becomes(t, "1", func() string { return values(m, one) })
	testutil.Becomes(t, "1", func() string { return values(m, two) })
	renamed := *one
	renamed.Name, renamed.Skip, renamed.MaxStaleness = "renamed", true, time.Hour
	m.Apply([]*Source{&renamed})
	if got := values(m, &renamed); got != "1" {
		t.Errorf("after the reload it is %s", got)
	}
	testutil.Becomes(t, "the state 'things' has not been read yet", func() string { return values(m, two) })
	if n := s.count("GET /things"); n != 1 {
		t.Errorf("listed %d times", n)
	}
	m.Apply([]*Source{two})
	testutil.Becomes(t, "1", func() string { return values(m, two) })
}

// TestGet: an object that a request needs is read once for a while; one that does not exist is looked for each time.
func TestGet(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	m := managerOf(t, s)
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	for range 3 {
		object, err := m.Get(context.Background(), s, "/things/a", kind)
		if err != nil || value(object) != "1" || text(object, "kind") != "Thing" ||
			text(object, "apiVersion") != "example.com/v1" {
			t.Fatalf("a is %v, %v", object, err)
		}
		if object, err := m.Get(context.Background(), s, "/things/b", kind); err != nil || object.Valid() {
			t.Fatalf("b is %v, %v", object, err)
		}
	}
	if a, b := s.count("/things/a"), s.count("/things/b"); a != 1 || b != 3 {
		t.Errorf("a was read %d times, b %d times", a, b)
	}
	s.set("b", "2")
	if object, err := m.Get(context.Background(), s, "/things/b", kind); err != nil || value(object) != "2" {
		t.Errorf("b is %v, %v, the moment it is there", object, err)
	}
}

// TestImpatience: a client that leaves gets no answer; what it asked for is read all the same for those who wait.
func TestImpatience(t *testing.T) {
	s := newServer()
	s.set("a", "1")
	release := make(chan struct{})
	s.fail = func(string) error { <-release; return nil }
	m := managerOf(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := m.Get(ctx, s, "/things/a", schema.GroupVersionKind{}); !errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	close(release)
	testutil.Becomes(t, "1", func() string {
		o, _ := m.Get(context.Background(), s, "/things/a", schema.GroupVersionKind{})
		return value(o)
	})
	if n := s.count("/things/a"); n != 1 {
		t.Errorf("read %d times", n)
	}
}

// TestCacheIsBounded: what was read on demand stays within the bounds, whatever is asked for.
func TestCacheIsBounded(t *testing.T) {
	s := newServer()
	s.raw = fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", 100<<10))
	m := managerOf(t, s)
	for i := range 800 {
		if _, err := m.Get(context.Background(), s, fmt.Sprintf("/things/%d", i),
			schema.GroupVersionKind{}); err != nil {
			t.Fatal(err)
		}
	}
	if m.cache.bytes > maxCached || m.cache.known.Len() > maxEntries {
		t.Errorf("%d entries of %d bytes", m.cache.known.Len(), m.cache.bytes)
	}
	var sum int64
	for _, k := range m.cache.known.Keys() {
		e, _ := m.cache.known.Peek(k)
		sum += e.bytes
	}
	if sum != m.cache.bytes {
		t.Errorf("counts %d bytes for %d", m.cache.bytes, sum)
	}
}

// TestRace reads while everything changes, reloads and breaks; it is for the race detector.
func TestRace(t *testing.T) {
	s := newServer()
	watched, polled := sourceOf(Watch), sourceOf(Poll)
	polled.Path = "/polled"
	m := managerOf(t, s, watched, polled)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, source := range []*Source{watched, polled} {
					objects, err := m.Objects(context.Background(), source, "")
					for _, o := range objects {
						if value(o) == "" || err != nil {
							t.Errorf("%v, %v", o, err)
							return
						}
					}
				}
			}
		})
	}
	for i := range 300 {
		s.set(fmt.Sprintf("t%d", i%20), fmt.Sprint(i))
		switch i % 60 {
		case 20:
			s.forget()
		case 40:
			m.Apply([]*Source{watched})
		case 59:
			m.Apply([]*Source{watched, polled})
		}
	}
	close(stop)
	all.Wait()
}
