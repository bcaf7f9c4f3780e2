// Package routes finds the route of a request, in trees that are compiled when a table of routes comes into force: by
// the listener that took the request, its host, its path, its method, its headers and its query. The precedence is that
// of Gateway API, which the short form of the configuration shares.
package routes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/readings"
	"github.com/admission-gateway/gateway/internal/routing"
)

// An Entry leads the requests of a listener for a host that fit a match to a route.
type Entry[R comparable] struct {
	Listener int
	Host     string // "*." before the end of hosts, or "" for any
	Match    *routing.Match
	Route    R
}

// A Request is what a tree looks at.
type Request struct {
	Listener int
	// Host may have a port, which does not count.
	Host []byte
	// Target is the path, with the query.
	Target string
	// Head has method and headers.
	Head *message.Head
}

// A Tree finds routes. The zero value has none.
//
// Of the entries that fit a request, one with a named host counts before one with the end of hosts, the longer end
// first, and both before one for any host. Then an exact path counts before an expression, the longer expression first,
// and both before a prefix, the longer prefix first. Then counts one with a method, then one with more headers, then
// one with more parameters, and at last the one that is added first.
type Tree[R comparable] struct {
	listeners []hosts[R] // by how paths are written
	// read finds the routes of paths as servers read them. It is listeners unless servers read the path of an entry in
	// different ways.
	read []hosts[R]
}

// New compiles a tree. An error names the expression that cannot be used.
func New[R comparable](entries []Entry[R]) (*Tree[R], error) {
	t := &Tree[R]{}
	var respelled []Entry[R]
	for i := range entries {
		e := &entries[i]
		if path := &e.Match.Path; path.Kind != routing.PathExpression && !readings.IsPlain(path.Value) {
			respelled = appendReadings(respelled, e)
		}
	}
	var err error
	if t.listeners, err = compile(entries); err != nil {
		return nil, err
	}
	t.read = t.listeners
	if len(respelled) > 0 { // which count after the entries that have such a path themselves
		t.read, err = compile(slices.Concat(entries, respelled))
	}
	return t, err
}

// appendReadings appends an entry with each path for which servers may take its own.
func appendReadings[R comparable](to []Entry[R], e *Entry[R]) []Entry[R] {
	readings.Any(e.Match.Path.Value, func(reading string) bool {
		match := *e.Match
		match.Path.Value = reading
		to = append(to, Entry[R]{Listener: e.Listener, Host: e.Host, Match: &match, Route: e.Route})
		return false
	})
	return to
}

// compile makes the trees of entries, by their listeners.
func compile[R comparable](entries []Entry[R]) (all []hosts[R], err error) {
	for i := range entries {
		e := &entries[i]
		for len(all) <= e.Listener {
			all = append(all, hosts[R]{})
		}
		c := candidate[R]{route: e.Route}
		if err := c.compile(e.Match, i); err != nil {
			return nil, fmt.Errorf("the route of the host '%s' and the path '%s': %w", e.Host, e.Match.Path.Value, err)
		}
		all[e.Listener].root(strings.ToLower(e.Host)).add(&e.Match.Path, c)
	}
	for i := range all {
		one := &all[i]
		one.each(func(n *node[R]) {
			n.finish(nil, nil)
			one.dependsOnPath = one.dependsOnPath || n.next != nil || len(n.expressions) > 0
		})
	}
	return all, nil
}

// An AmbiguousError says that servers may read the path of a request as another one, which leads to another route, or
// to none.
type AmbiguousError struct {
	// Reading is such a path. It is "" if the path can be read in too many ways.
	Reading string
}

func (e *AmbiguousError) Error() string {
	if e.Reading == "" {
		return "the path can be read in too many ways"
	}
	return "the path could be read as '" + e.Reading + "', which is routed in another way"
}

// Find returns the route of a request; the error is nil or an [AmbiguousError]. It does not allocate unless the host
// has capital letters, an expression is compared with a value that is written in several lines or percent-encoded, or
// servers may read the path in different ways.
func (t *Tree[R]) Find(r *Request) (route R, found bool, err error) {
	if uint(r.Listener) >= uint(len(t.listeners)) {
		return route, false, nil
	}
	in := &t.listeners[r.Listener]
	path, query, _ := strings.Cut(r.Target, "?")
	s := search{head: r.Head, query: query}
	if len(in.named)+len(in.below) > 0 {
		s.host = lower(withoutPort(r.Host))
	}
	route, found = in.find(path, &s)
	if in.dependsOnPath && !readings.IsPlain(path) {
		if err := t.read[r.Listener].differs(path, &s, route, found); err != nil {
			var none R
			return none, false, err
		}
	}
	return route, found, nil
}

// differs returns an error if a server could read a path as one that has another route.
func (h *hosts[R]) differs(path string, s *search, route R, found bool) error {
	e := &AmbiguousError{}
	isOther := func(reading string) bool {
		other, isFound := h.find(reading, s)
		if other == route && isFound == found {
			return false
		}
		e.Reading = reading
		return true
	}
	if isOther(path) || readings.Any(path, isOther) {
		return e
	}
	return nil
}

// find returns the route of a path.
func (h *hosts[R]) find(path string, s *search) (route R, found bool) {
	if len(h.named)+len(h.below) > 0 {
		if at := h.named[string(s.host)]; at != nil {
			if one := at.find(path, s); one != nil {
				return one.route, true
			}
		}
		for end := h.ends(s.host, len(s.host)); end != nil; end = h.ends(s.host, len(end)-1) {
			if at := h.below[string(end)]; at != nil {
				if one := at.find(path, s); one != nil {
					return one.route, true
				}
			}
		}
	}
	if h.any != nil {
		if one := h.any.find(path, s); one != nil {
			return one.route, true
		}
	}
	return route, false
}

// hosts are the trees of paths of a listener.
type hosts[R comparable] struct {
	named map[string]*node[R] // by the host in lower case
	below map[string]*node[R] // by the end of hosts, such as ".example.com"
	any   *node[R]
	// shortest and longest are the lengths of the ends.
	shortest, longest int
	// dependsOnPath says that an entry is not for all paths.
	dependsOnPath bool
}

// root returns the tree of a host, which it makes.
func (h *hosts[R]) root(host string) *node[R] {
	in, key := &h.named, host
	switch end, isEnd := strings.CutPrefix(host, "*"); {
	case host == "":
		if h.any == nil {
			h.any = &node[R]{}
		}
		return h.any
	case isEnd:
		in, key = &h.below, end
		h.longest = max(h.longest, len(end))
		if h.shortest == 0 || len(end) < h.shortest {
			h.shortest = len(end)
		}
	}
	if *in == nil {
		*in = make(map[string]*node[R])
	}
	if (*in)[key] == nil {
		(*in)[key] = &node[R]{}
	}
	return (*in)[key]
}

// ends returns the longest end of a host that begins with a dot, is at most so long, and could be known; nil if there
// is none.
func (h *hosts[R]) ends(host []byte, most int) []byte {
	for at := max(len(host)-min(most, h.longest), 1); len(host)-at >= h.shortest && at < len(host); at++ {
		if host[at] == '.' {
			return host[at:]
		}
	}
	return nil
}

// each calls f with all trees of paths.
func (h *hosts[R]) each(f func(*node[R])) {
	for _, n := range h.named {
		f(n)
	}
	for _, n := range h.below {
		f(n)
	}
	if h.any != nil {
		f(h.any)
	}
}

// node is a path, up to the end of a segment.
type node[R comparable] struct {
	exact       []candidate[R] // of this path itself
	expressions []candidate[R] // of paths that begin with this one
	prefixed    []candidate[R] // of this path, and the paths below it
	next        map[string]*node[R]
	// prefixes and expressed are the nearest nodes above with paths of these kinds.
	prefixes, expressed *node[R]
}

// add adds a candidate.
func (n *node[R]) add(path *routing.PathMatch, c candidate[R]) {
	switch path.Kind {
	case routing.PathExact:
		at := n.at(path.Value)
		at.exact = append(at.exact, c)
	case routing.PathExpression:
		at := n.at(wholeSegments(c.path.beginning))
		at.expressions = append(at.expressions, c)
	default:
		at := n.at(strings.TrimSuffix(path.Value, "/"))
		at.prefixed = append(at.prefixed, c)
	}
}

// wholeSegments returns the segments of a path but for the last, which may go on.
func wholeSegments(path string) string {
	if !strings.HasPrefix(path, "/") {
		return ""
	}
	return path[:strings.LastIndexByte(path, '/')]
}

// at returns the node of a path, which it makes.
func (n *node[R]) at(path string) *node[R] {
	for rest := path; rest != ""; {
		var segment string
		segment, rest = cut(rest)
		next := n.next[segment]
		if next == nil {
			if n.next == nil {
				n.next = make(map[string]*node[R], 1)
			}
			next = &node[R]{}
			n.next[segment] = next
		}
		n = next
	}
	return n
}

// finish sorts the candidates, and connects the node with those above it.
func (n *node[R]) finish(prefixes, expressed *node[R]) {
	n.prefixes, n.expressed = prefixes, expressed
	for _, all := range [...]*[]candidate[R]{&n.exact, &n.expressions, &n.prefixed} {
		if len(*all) < 2 {
			continue
		}
		slices.SortStableFunc(*all, func(a, b candidate[R]) int { return a.rank.compare(&b.rank) })
		if last := slices.IndexFunc(*all, func(c candidate[R]) bool { return c.isOpen }); last >= 0 {
			*all = slices.Clip((*all)[:last+1])
		}
	}
	if len(n.prefixed) > 0 {
		prefixes = n
	}
	if len(n.expressions) > 0 {
		expressed = n
	}
	for _, below := range n.next {
		below.finish(prefixes, expressed)
	}
}

// find returns the candidate that counts first among those that fit; nil if none does.
func (n *node[R]) find(path string, s *search) *candidate[R] {
	rest := path
	for rest != "" && n.next != nil {
		segment, after := cut(rest)
		next := n.next[segment]
		if next == nil {
			break
		}
		n, rest = next, after
	}
	if rest == "" {
		if one := first(n.exact, s); one != nil {
			return one
		}
	}
	if n.expressions != nil || n.expressed != nil {
		if one := n.byExpression(path, s); one != nil {
			return one
		}
	}
	for ; n != nil; n = n.prefixes {
		if one := first(n.prefixed, s); one != nil {
			return one
		}
	}
	return nil
}

// byExpression returns the candidate that counts first among those whose expressions match the path.
func (n *node[R]) byExpression(path string, s *search) (best *candidate[R]) {
	for ; n != nil; n = n.expressed {
		for i := range n.expressions {
			c := &n.expressions[i]
			if best != nil && best.rank.compare(&c.rank) < 0 {
				break
			}
			if strings.HasPrefix(path, c.path.beginning) && c.path.pattern.Match(path) && c.fits(s) {
				best = c
				break
			}
		}
	}
	return best
}

// first returns the first candidate that fits.
func first[R comparable](all []candidate[R], s *search) *candidate[R] {
	for i := range all {
		if all[i].isOpen || all[i].fits(s) {
			return &all[i]
		}
	}
	return nil
}

// cut returns the first segment of a path with its slash, and the rest.
func cut(path string) (segment, rest string) {
	if end := strings.IndexByte(path[1:], '/'); end >= 0 {
		return path[:end+1], path[end+1:]
	}
	return path, ""
}
