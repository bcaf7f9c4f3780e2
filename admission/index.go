package admission

import (
	"cmp"
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/index"
	"github.com/admission-gateway/gateway/internal/resource"
)

// anyName is the group or resource that stands for all.
const anyName = index.Any

// The marks of rules in the index.
const (
	readsOldMark     = iota // the policy reads the stored object
	readsCarriedMark        // it reads what a server carries over from that
)

// policyIndex finds the policies that may match a request. A request looks at policies that name its
// resource, and at policies that name none, and never at a policy for another one. Policies that ask
// for a namespace's name or for a label are found by these.
type policyIndex struct {
	rules        index.Index
	narrowers    []Narrower // by position; nil: the rules say all
	insistent    []Insistent
	prefilters   []Prefilter // by position; nil: it has no prefilter
	canPrefilter bool        // one of them is not nil
	oldReader    []OldReader
	decided      []Decided
}

// positions is a set of positions of policies.
type positions []uint64

func (s positions) has(p int) bool { return p>>6 < len(s) && s[p>>6]&(1<<(p&63)) != 0 }

func (s positions) with(p int) positions {
	for p>>6 >= len(s) {
		s = append(s, 0)
	}
	s[p>>6] |= 1 << (p & 63)
	return s
}

// A found is what the index has for operations on a resource or a subresource.
type found []*index.List

// room is the space for the lists of a found, so that a lookup allocates nothing.
type room [6]*index.List

func newIndex[P Policy](policies []P) (x policyIndex) {
	x.narrowers = make([]Narrower, len(policies))
	x.insistent = make([]Insistent, len(policies))
	x.prefilters = make([]Prefilter, len(policies))
	x.oldReader = make([]OldReader, len(policies))
	x.decided = make([]Decided, len(policies))
	for position, p := range policies {
		x.narrowers[position], _ = Policy(p).(Narrower)
		x.insistent[position], _ = Policy(p).(Insistent)
		x.oldReader[position], _ = Policy(p).(OldReader)
		x.decided[position], _ = Policy(p).(Decided)
		if f, is := Policy(p).(Prefilter); is && f.CanPrefilter() {
			x.prefilters[position], x.canPrefilter = f, true
		}
		needsOld := p.NeedsOld()
		if t := termsOf(p); t != nil {
			needsOld = needsOld || t.NeedsOld()
		}
		c, is := Policy(p).(CarriedReader)
		readsCarried := is && c.ReadsCarried()
		for _, r := range p.Rules() {
			x.add(position, &r, needsOld || r.NeedsOld, readsCarried || r.ReadsCarried)
		}
	}
	return x
}

func (x *policyIndex) add(position int, r *Rule, needsOld, readsCarried bool) {
	rule := index.Rule{
		Group: r.Group, Resource: r.Resource, Versions: r.Versions, Subresources: r.Subresources,
		Actions: uint16(r.Operations), Namespaces: r.Namespaces, Labels: r.Labels,
	}
	if needsOld {
		rule.Marks |= 1 << readsOldMark
	}
	if readsCarried {
		rule.Marks |= 1 << readsCarriedMark
	}
	x.rules.Add(position, &rule)
}

func keyOf(i *resource.Info) index.Key {
	return index.Key{Group: i.Group, Version: i.Version, Resource: i.Resource, Subresource: i.Subresource}
}

// find looks up the policies for operations on a resource.
func (x *policyIndex) find(to *room, i *resource.Info, o Operation) found {
	if x.rules.IsEmpty() {
		return nil
	}
	key := keyOf(i)
	return x.rules.Find(to[:0], &key, uint16(o))
}

// each calls yield for each position in a list that may be for the namespace of the request, until it returns false.
func each(l *index.List, i *resource.Info, yield func(position int32) bool) bool {
	if l == nil {
		return true
	}
	for _, positions := range [...][]int32{l.Plain, namedBy(l, i), l.AllLabelled} {
		for _, p := range positions {
			if !yield(p) {
				return false
			}
		}
	}
	return true
}

// namedBy returns the positions that name the request's namespace, of all that name one. What is in
// no namespace is never exempt.
func namedBy(l *index.List, i *resource.Info) []int32 {
	if i.Namespace == "" || i.IsNamespaces() {
		return l.AllNamed
	}
	return l.Named[i.Namespace]
}

// matches reports whether any of the policies found may match the operation.
func (x *policyIndex) matches(f found, i *resource.Info, o Operation) bool {
	for _, l := range f {
		if !each(l, i, func(p int32) bool { return x.excludes(p, i, o) }) {
			return true
		}
	}
	return false
}

// matchesAll reports whether some policy found may match the operation on the resource, whatever the namespace and the
// name are.
func (x *policyIndex) matchesAll(f found, i *resource.Info, o Operation) bool {
	return slices.ContainsFunc(f, func(l *index.List) bool {
		return slices.ContainsFunc(l.Plain, func(p int32) bool {
			return x.prefilters[p] == nil &&
				(x.narrowers[p] == nil || x.insistent[p] != nil && x.insistent[p].NeverExcludes(i, o))
		})
	})
}

// matched returns the policies found that match the operation on the resource whatever a request says.
func (x *policyIndex) matched(f found, i *resource.Info, o Operation) (all positions) {
	for _, l := range f {
		for _, p := range l.Plain {
			if d := x.decided[p]; d != nil && d.AlwaysMatches(i, o) {
				all = all.with(int(p))
			}
		}
	}
	return all
}

func (x *policyIndex) excludes(position int32, i *resource.Info, o Operation) bool {
	if n := x.narrowers[position]; n != nil && n.Excludes(i, o) {
		return true
	}
	f := x.prefilters[position]
	return f != nil && i.Prefilter != nil && i.Prefilter.IsFilteredOut(f, i, o)
}

// canPrefilterIn reports whether a request's prefilter may exclude any of the policies found.
func (x *policyIndex) canPrefilterIn(f found) bool {
	if !x.canPrefilter {
		return false
	}
	haveOne := func(positions []int32) bool {
		return slices.ContainsFunc(positions, func(p int32) bool { return x.prefilters[p] != nil })
	}
	return slices.ContainsFunc(f, func(l *index.List) bool {
		return haveOne(l.Plain) || haveOne(l.AllNamed) || haveOne(l.AllLabelled)
	})
}

// differs reports whether any of them is for one operation and not for the other.
func (x *policyIndex) differs(f, other found, i *resource.Info, a, b Operation) bool {
	of, others := search(f, i), search(other, i)
	for {
		p, q := x.nextOf(&of, i, a), x.nextOf(&others, i, b)
		if p != q {
			return true
		}
		if p < 0 {
			return false
		}
	}
}

// nextOf returns the next position of a policy that may match the operation; less than 0 if there is none.
func (x *policyIndex) nextOf(s *index.Search, i *resource.Info, o Operation) int {
	for {
		if p := s.Next(); p < 0 || !x.excludes(int32(p), i, o) {
			return p
		}
	}
}

// needsOld reports whether any of the policies found reads the stored object.
func (x *policyIndex) needsOld(f found, i *resource.Info, o Operation) bool {
	for _, l := range f {
		if !each(l.Marked[readsOldMark], i, func(p int32) bool {
			return x.excludes(p, i, o) || x.oldReader[p] != nil && !x.oldReader[p].ReadsOld(i, o)
		}) {
			return true
		}
	}
	return false
}

// readsCarried reports whether any of them reads what a server carries over from the stored object.
func readsCarried(f found) bool {
	return slices.ContainsFunc(f, func(l *index.List) bool { return l.Marked[readsCarriedMark] != nil })
}

// search goes through the policies found that may match a request whose object may still change.
func search(f found, i *resource.Info) (s index.Search) {
	for _, l := range f {
		s.From(l.Plain)
		s.From(namedBy(l, i))
		s.From(l.AllLabelled)
	}
	return s
}

// searchFor goes through the policies found that may match the request as it is now. Its room is the attributes'.
func searchFor(f found, a *Attributes) (s index.Search) {
	labelled := false
	for _, l := range f {
		s.From(l.Plain)
		s.From(namedBy(l, a.Info))
		labelled = labelled || len(l.AllLabelled) > 0
	}
	if !labelled {
		return s
	}
	a.found = a.found[:0]
	for _, l := range f {
		if l.Labelled != nil {
			a.found = appendLabelled(a.found, l, a)
		}
	}
	slices.Sort(a.found)
	a.found = slices.Compact(a.found)
	s.From(a.found)
	return s
}

// appendLabelled adds the policies that ask for a label that the object or the stored object has.
func appendLabelled(positions []int32, l *index.List, a *Attributes) []int32 {
	for _, object := range [...]document.Node{root(a.Object), root(a.Old)} {
		labels, ok := Labels(object)
		if !ok {
			continue
		}
		set := nodeLabels{labels}
		for n := labels.First(); n.Valid(); n = n.Next() {
			key := n.Key()
			positions = append(positions, l.Labelled[Label{Key: key, Value: set.Get(key)}]...)
		}
	}
	return positions
}

// byName sorts policies by name; policies of one name, which are of different kinds, stay in their
// order.
func byName[P Policy](policies []P) []P {
	sorted := slices.Clone(policies)
	slices.SortStableFunc(sorted, func(a, b P) int { return cmp.Compare(a.Name(), b.Name()) })
	return sorted
}
