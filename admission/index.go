package admission

import (
	"cmp"
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// anyName is the group or resource that stands for all.
const anyName = "*"

// An index finds the policies that may concern a request by resource, group, version and operation.
// A request looks at policies that name its resource, and at policies that name none, and never at
// a policy about another one. Policies that ask for a namespace's name or for a label are found by
// these.
type index struct {
	resources map[string]*table
	any       *table     // of rules for any resource; nil: there are none
	narrowers []Narrower // by position; nil: the rules say all
	foreseers []Foreseer // by position; nil: nothing is foreseen
	foresees  bool       // one of them is not nil
	oldReader []OldReader
}

// table has the rules for a resource, or for any.
type table struct {
	groups map[string]*group
	any    *group // of rules for any group; nil: there are none
}

type group struct {
	versions []version // few; anyName among them
}

type version struct {
	name       string
	operations [operations]list
}

// operations is how many operations there are.
const operations = 4

// list has positions of policies, in order and each once. Policies are in the order of their
// positions.
type list struct {
	plain    []int32            // of rules that ask for nothing more
	named    map[string][]int32 // by the name of the namespace that they ask for
	allNamed []int32
	labelled map[Label][]int32 // by a label of the object that they ask for
	all      []int32
	readOld  []int32 // of policies that read the stored object
	// readsCarried holds if it does for one of the policies.
	readsCarried bool
}

func newIndex[P Policy](policies []P) index {
	x := index{resources: make(map[string]*table)}
	x.narrowers = make([]Narrower, len(policies))
	x.foreseers = make([]Foreseer, len(policies))
	x.oldReader = make([]OldReader, len(policies))
	for position, p := range policies {
		x.narrowers[position], _ = Policy(p).(Narrower)
		x.oldReader[position], _ = Policy(p).(OldReader)
		if f, is := Policy(p).(Foreseer); is && f.Foresees() {
			x.foreseers[position], x.foresees = f, true
		}
		needsOld := p.NeedsOld()
		if t := termsOf(p); t != nil {
			needsOld = needsOld || t.NeedsOld()
		}
		c, is := Policy(p).(CarriedReader)
		readsCarried := is && c.ReadsCarried()
		for _, r := range p.Rules() {
			x.add(int32(position), &r, needsOld || r.NeedsOld, readsCarried || r.ReadsCarried)
		}
	}
	return x
}

func (x *index) add(position int32, r *Rule, needsOld, readsCarried bool) {
	t := x.any
	if r.Resource != anyName {
		t = x.resources[r.Resource]
	}
	if t == nil {
		t = &table{groups: make(map[string]*group)}
		if r.Resource == anyName {
			x.any = t
		} else {
			x.resources[r.Resource] = t
		}
	}
	versions := r.Versions
	if len(versions) == 0 {
		versions = []string{anyName}
	}
	for _, name := range versions {
		v := t.version(r.Group, name)
		for bit := range operations {
			if r.Operations&(1<<bit) != 0 {
				v.operations[bit].add(position, r, needsOld, readsCarried)
			}
		}
	}
}

// version is the place for rules of a group and version, which it makes.
func (t *table) version(groupName, versionName string) *version {
	g := t.any
	if groupName != anyName {
		g = t.groups[groupName]
	}
	if g == nil {
		g = &group{}
		if groupName == anyName {
			t.any = g
		} else {
			t.groups[groupName] = g
		}
	}
	versions := &g.versions
	v := slices.IndexFunc(*versions, func(v version) bool { return v.name == versionName })
	if v < 0 {
		v = len(*versions)
		*versions = append(*versions, version{name: versionName})
	}
	return &(*versions)[v]
}

func (l *list) add(position int32, r *Rule, needsOld, readsCarried bool) {
	if needsOld {
		l.readOld = with(l.readOld, position)
	}
	l.readsCarried = l.readsCarried || readsCarried
	l.all = with(l.all, position)
	switch {
	case len(r.Labels) > 0:
		if l.labelled == nil {
			l.labelled = make(map[Label][]int32)
		}
		for _, label := range r.Labels {
			l.labelled[label] = with(l.labelled[label], position)
		}
	case len(r.Namespaces) > 0:
		if l.named == nil {
			l.named = make(map[string][]int32)
		}
		l.allNamed = with(l.allNamed, position)
		for _, name := range r.Namespaces {
			l.named[name] = with(l.named[name], position)
		}
	default:
		l.plain = with(l.plain, position)
	}
}

// with adds a position, which is not less than those before.
func with(list []int32, position int32) []int32 {
	if n := len(list); n > 0 && list[n-1] == position {
		return list
	}
	return append(list, position)
}

// lists calls visit for each list that has policies for the operation on the resource.
func (x *index) lists(i *resource.Info, o Operation, visit func(*list)) {
	if len(x.resources) == 0 && x.any == nil {
		return
	}
	for _, t := range [2]*table{x.resources[i.Resource], x.any} {
		if t == nil {
			continue
		}
		for _, g := range [2]*group{t.groups[i.Group], t.any} {
			if g == nil {
				continue
			}
			for v := range g.versions {
				at := &g.versions[v]
				if at.name != i.Version && at.name != anyName {
					continue
				}
				for bit := range operations {
					if o&(1<<bit) != 0 && len(at.operations[bit].all) > 0 {
						visit(&at.operations[bit])
					}
				}
			}
		}
	}
}

// concerns reports whether there is any policy for the operation on the resource.
func (x *index) concerns(i *resource.Info, o Operation) (found bool) {
	x.lists(i, o, func(l *list) { found = found || x.includes(l.all, i, o) })
	return found
}

// names reports whether a rule of any policy names the operation on the resource.
func (x *index) names(i *resource.Info, o Operation) (found bool) {
	x.lists(i, o, func(*list) { found = true })
	return found
}

// includes reports whether any of the policies at some positions may be about the operation.
func (x *index) includes(positions []int32, i *resource.Info, o Operation) bool {
	for _, p := range positions {
		if !x.excludes(p, i, o) {
			return true
		}
	}
	return false
}

func (x *index) excludes(position int32, i *resource.Info, o Operation) bool {
	if n := x.narrowers[position]; n != nil && n.Excludes(i, o) {
		return true
	}
	f := x.foreseers[position]
	return f != nil && i.Foresight != nil && i.Foresight.IsOutside(f, i, o)
}

// differs reports whether any of them is for one operation and not for the other.
func (x *index) differs(i *resource.Info, a, b Operation) bool {
	of, other := x.search(i, a), x.search(i, b)
	for {
		p, q := x.nextOf(&of, i, a), x.nextOf(&other, i, b)
		if p != q {
			return true
		}
		if p < 0 {
			return false
		}
	}
}

// nextOf returns the next position of a policy that may be about the operation; less than 0 if there is none.
func (x *index) nextOf(s *search, i *resource.Info, o Operation) int {
	for {
		if p := s.next(); p < 0 || !x.excludes(int32(p), i, o) {
			return p
		}
	}
}

// needsOld reports whether any of them reads the stored object.
func (x *index) needsOld(i *resource.Info, o Operation) (needs bool) {
	x.lists(i, o, func(l *list) {
		for _, p := range l.readOld {
			needs = needs || !x.excludes(p, i, o) && (x.oldReader[p] == nil || x.oldReader[p].ReadsOld(i, o))
		}
	})
	return needs
}

// readsCarried reports whether any of them reads what a server carries over from the stored object.
func (x *index) readsCarried(i *resource.Info, o Operation) (reads bool) {
	x.lists(i, o, func(l *list) { reads = reads || l.readsCarried })
	return reads
}

// search finds all policies for the operation on the resource.
func (x *index) search(i *resource.Info, o Operation) (s search) {
	x.lists(i, o, func(l *list) { s.from(l.all) })
	return s
}

// searchFor finds the policies that may concern the request as it is now. Its room is the attributes'.
func (x *index) searchFor(a *Attributes) (s search) {
	narrow := false
	x.lists(a.Info, a.Operation, func(l *list) {
		s.from(l.plain)
		narrow = narrow || len(l.plain) < len(l.all)
	})
	if !narrow {
		return s
	}
	found := a.found[:0]
	name := a.Namespace()
	x.lists(a.Info, a.Operation, func(l *list) {
		if name == "" || a.Info.Resource == "namespaces" {
			found = append(found, l.allNamed...) // what is in no namespace is never exempt
		} else {
			found = append(found, l.named[name]...)
		}
		if l.labelled != nil {
			found = l.labels(found, a)
		}
	})
	slices.Sort(found)
	a.found = slices.Compact(found)
	s.from(a.found)
	return s
}

// labels adds the policies that ask for a label that the object or the stored object has.
func (l *list) labels(found []int32, a *Attributes) []int32 {
	for _, object := range [...]document.Node{root(a.Object), root(a.Old)} {
		labels, ok := Labels(object)
		if !ok {
			continue
		}
		set := nodeLabels{labels}
		for n := labels.First(); n.Valid(); n = n.Next() {
			key := n.Key()
			found = append(found, l.labelled[Label{key, set.Get(key)}]...)
		}
	}
	return found
}

// A search goes through the policies that may concern a request, in order and each once. It allocates nothing for up to
// as many lists as it has room for.
type search struct {
	lists [6][]int32
	n     int
	more  [][]int32
}

func (s *search) from(list []int32) {
	switch {
	case len(list) == 0:
	case s.n < len(s.lists):
		s.lists[s.n] = list
		s.n++
	default:
		s.more = append(s.more, list)
	}
}

// next is the position of the next policy, -1 after the last one.
func (s *search) next() int {
	if s.n == 1 { // as mostly
		if len(s.lists[0]) == 0 {
			return -1
		}
		first := s.lists[0][0]
		s.lists[0] = s.lists[0][1:]
		return int(first)
	}
	first := int32(-1)
	least := func(list []int32) {
		if len(list) > 0 && (first < 0 || list[0] < first) {
			first = list[0]
		}
	}
	for i := range s.n {
		least(s.lists[i])
	}
	for i := range s.more {
		least(s.more[i])
	}
	if first < 0 {
		return -1
	}
	for i := range s.n {
		if len(s.lists[i]) > 0 && s.lists[i][0] == first {
			s.lists[i] = s.lists[i][1:]
		}
	}
	for i := range s.more {
		if len(s.more[i]) > 0 && s.more[i][0] == first {
			s.more[i] = s.more[i][1:]
		}
	}
	return int(first)
}

// byName sorts policies by name; policies of one name, which are of different kinds, stay in their
// order.
func byName[P Policy](policies []P) []P {
	sorted := slices.Clone(policies)
	slices.SortStableFunc(sorted, func(a, b P) int { return cmp.Compare(a.Name(), b.Name()) })
	return sorted
}
