// Package index finds, among any number of rules, the few that a request may match: by group,
// version, resource, subresource and what the request does, and then by its namespace or a label of
// its object. Policies, limits and conventions all have their rules in such an index, so that a
// thousand of them that do not match cost nothing.
//
// The index knows rules by positions, the places of their owners in a list of the caller's. What it
// finds is in the order of the positions, and each once.
package index

import (
	"math/bits"
	"slices"
)

// Any means all groups or resources in a [Rule].
const Any = "*"

// A Rule names requests. What is empty names all, but for Group, Resource and Actions.
type Rule struct {
	Group, Resource        string
	Versions, Subresources []string
	// Actions is a set of what requests do: a bit for each operation, or verb.
	Actions uint16
	// Namespaces are the names of the only namespaces that the rule is for. The caller decides
	// whether it applies to objects without a namespace.
	Namespaces []string
	// The object or the stored object must have one of Labels.
	Labels []Label
	// Marks is a set of properties that the caller looks for; see [List].
	Marks uint8
}

// A Label is a label with its value.
type Label struct{ Key, Value string }

// A Key is what of a request is known before it comes: the resource and, for a part of its objects, the
// subresource.
type Key struct{ Group, Version, Resource, Subresource string }

// actions and marks are how many of each a rule can have.
const (
	actions = 16
	marks   = 2
)

// An Index has rules. The zero value has none. It must not change once it is in use.
type Index struct {
	resources map[string]*table
	any       *table // of rules for any resource; nil if there are none
}

// table has the rules for a resource, or for any.
type table struct {
	groups map[string]*group
	any    *group // of rules for any group; nil if there are none
}

// group has the rules for the versions and subresources of a group: few.
type group struct{ parts []versionLists }

// versionLists are the lists of rules for a version and a subresource.
type versionLists struct {
	version, subresource string
	lists                [actions]*List
}

// A List has positions of rules for the same requests, in order and each once.
type List struct {
	// Plain are the positions of rules that ask for nothing more.
	Plain []int32
	// Named are the positions of rules that ask for a namespace, by its name; AllNamed are all of
	// these.
	Named    map[string][]int32
	AllNamed []int32
	// Labelled are the positions of rules that ask for a label, by each label that they ask for;
	// AllLabelled are all of these.
	Labelled    map[Label][]int32
	AllLabelled []int32
	// Marked are the lists of rules that have a mark, by the number of its bit; nil if there are
	// none.
	Marked [marks]*List
}

// IsEmpty reports whether the index has no rules.
func (x *Index) IsEmpty() bool { return len(x.resources) == 0 && x.any == nil }

// Add adds a rule at a position, which must not be less than those before.
func (x *Index) Add(position int, r *Rule) {
	t := x.any
	if r.Resource != Any {
		t = x.resources[r.Resource]
	}
	if t == nil {
		t = &table{groups: make(map[string]*group)}
		switch {
		case r.Resource == Any:
			x.any = t
		case x.resources == nil:
			x.resources = map[string]*table{r.Resource: t}
		default:
			x.resources[r.Resource] = t
		}
	}
	g := t.group(r.Group)
	for _, version := range orAny(r.Versions) {
		for _, subresource := range orAny(r.Subresources) {
			g.part(version, subresource).add(int32(position), r)
		}
	}
}

func orAny(names []string) []string {
	if len(names) == 0 {
		return []string{Any}
	}
	return names
}

// group is the place for rules of a group, which it makes.
func (t *table) group(name string) *group {
	g := t.any
	if name != Any {
		g = t.groups[name]
	}
	if g == nil {
		g = &group{}
		if name == Any {
			t.any = g
		} else {
			t.groups[name] = g
		}
	}
	return g
}

// part returns the lists for a version and a subresource, which it makes if there are none.
func (g *group) part(version, subresource string) *versionLists {
	i := slices.IndexFunc(g.parts,
		func(p versionLists) bool { return p.version == version && p.subresource == subresource })
	if i < 0 {
		i = len(g.parts)
		g.parts = append(g.parts, versionLists{version: version, subresource: subresource})
	}
	return &g.parts[i]
}

func (p *versionLists) add(position int32, r *Rule) {
	for bit := range p.lists {
		if r.Actions&(1<<bit) == 0 {
			continue
		}
		if p.lists[bit] == nil {
			p.lists[bit] = &List{}
		}
		p.lists[bit].add(position, r)
	}
}

func (l *List) add(position int32, r *Rule) {
	for bit := range l.Marked {
		if r.Marks&(1<<bit) == 0 {
			continue
		}
		if l.Marked[bit] == nil {
			l.Marked[bit] = &List{}
		}
		l.Marked[bit].narrow(position, r)
	}
	l.narrow(position, r)
}

// narrow adds a position to the lists of what the rule asks for besides.
func (l *List) narrow(position int32, r *Rule) {
	switch {
	case len(r.Labels) > 0:
		if l.Labelled == nil {
			l.Labelled = make(map[Label][]int32)
		}
		l.AllLabelled = with(l.AllLabelled, position)
		for _, label := range r.Labels {
			l.Labelled[label] = with(l.Labelled[label], position)
		}
	case len(r.Namespaces) > 0:
		if l.Named == nil {
			l.Named = make(map[string][]int32)
		}
		l.AllNamed = with(l.AllNamed, position)
		for _, name := range r.Namespaces {
			l.Named[name] = with(l.Named[name], position)
		}
	default:
		l.Plain = with(l.Plain, position)
	}
}

// with adds a position, which is not less than those before.
func with(list []int32, position int32) []int32 {
	if n := len(list); n > 0 && list[n-1] == position {
		return list
	}
	return append(list, position)
}

// Find appends to lists the lists of the rules for a key and any of some actions. None of them is
// empty, and the same position may be in several.
func (x *Index) Find(lists []*List, k *Key, actions uint16) []*List {
	return x.find(lists, k, actions, false)
}

// FindInAll does the same for all subresources of the resource, and for itself.
func (x *Index) FindInAll(lists []*List, k *Key, actions uint16) []*List {
	return x.find(lists, k, actions, true)
}

func (x *Index) find(lists []*List, k *Key, does uint16, inAll bool) []*List {
	if x.IsEmpty() {
		return lists
	}
	for _, t := range [2]*table{x.resources[k.Resource], x.any} {
		if t == nil {
			continue
		}
		for _, g := range [2]*group{t.groups[k.Group], t.any} {
			if g == nil {
				continue
			}
			for i := range g.parts {
				if p := &g.parts[i]; p.is(k, inAll) {
					lists = p.find(lists, does)
				}
			}
		}
	}
	return lists
}

func (p *versionLists) is(k *Key, inAll bool) bool {
	return (p.version == k.Version || p.version == Any) &&
		(inAll || p.subresource == k.Subresource || p.subresource == Any)
}

func (p *versionLists) find(lists []*List, does uint16) []*List {
	for ; does != 0; does &= does - 1 {
		if l := p.lists[bits.TrailingZeros16(does)]; l != nil {
			lists = append(lists, l)
		}
	}
	return lists
}
