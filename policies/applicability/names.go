package applicability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/natives"
)

// names are the groups and resources that files describe.
type names struct {
	resources map[string]map[string][]*Resource // by group and plural, also the operations of the resource
	native    map[string]map[string]bool        // of Kubernetes itself
}

func newNames(resources []Resource) *names {
	n := &names{map[string]map[string][]*Resource{}, map[string]map[string]bool{}}
	for i := range resources {
		r := &resources[i]
		if n.resources[r.Group] == nil {
			n.resources[r.Group] = map[string][]*Resource{}
		}
		n.resources[r.Group][r.Names.Plural] = append(n.resources[r.Group][r.Names.Plural], r)
	}
	for kind, one := range natives.Kinds {
		if n.native[kind.Group] == nil {
			n.native[kind.Group] = map[string]bool{}
		}
		n.native[kind.Group][one.Plural] = true
	}
	return n
}

// ResourcesOf returns the resources that the files describe of a group, and their operations, by the names of the
// resources.
func (x *Index) ResourcesOf(group string) map[string][]*Resource { return x.names.resources[group] }

// isWhollyOrdinary reports whether all resources have paths of their own, so that no API server has more of the group.
func isWhollyOrdinary(resources map[string][]*Resource) bool {
	for _, all := range resources {
		if slices.ContainsFunc(all, func(r *Resource) bool { return len(r.Paths) == 0 }) {
			return false
		}
	}
	return true
}

// verbsOf returns the verbs of the requests that policies match by an operation.
func verbsOf(operation string) (all []string) {
	for v := range resource.Verbs {
		if o := v.Operation(); o != 0 && o.String() == operation {
			all = append(all, v.String())
		}
	}
	switch operation {
	case resource.AdmitCreate.String():
		return append(all, creates)
	case resource.AdmitConnect.String():
		return append(all, connects)
	}
	return all
}

// Kinds of requests that have other verbs, beside these: an update that may create, and a connection to somewhere else.
const (
	creates  = "creates"
	connects = "connects"
)

// matchedVerbs has the verbs that requests for the resources of a match block can have.
type matchedVerbs struct {
	named, verbs []string
	// isOpen says that the block may match more than the files describe, isOpenOnPlain that it may
	// if there is an API server.
	isOpen, isOpenOnPlain bool
}

// matched returns what the files say of the resources that a block matches.
func (n *names) matched(block document.Node, isLimit bool) (m matchedVerbs) {
	list, _ := block.Get("apiGroups")
	groups := manifest.Texts(list)
	isAny := len(groups) == 0 || slices.Contains(groups, "*")
	if isAny {
		groups, m.isOpenOnPlain = slices.Sorted(maps.Keys(n.resources)), true
	}
	list, _ = block.Get("resources")
	resources := manifest.Texts(list)
	if len(resources) == 0 {
		resources = []string{"*/*"}
	}
	for _, group := range groups {
		known := n.resources[group]
		for _, one := range resources {
			name, subresource, _ := strings.Cut(one, "/")
			if isLimit && name == "*" {
				subresource = "*"
				m.isOpen = m.isOpen || group == "" || isAny // requests that no file describes have a verb too
			}
			switch {
			case name != "*" && len(known[name]) > 0:
				m.add(known[name], subresource)
			case name == "*" && known != nil:
				m.isOpenOnPlain = m.isOpenOnPlain || n.native[group] != nil || !isWhollyOrdinary(known)
				for _, plural := range slices.Sorted(maps.Keys(known)) {
					m.add(known[plural], subresource)
				}
			case !isAny:
				m.isOpen = m.isOpen || n.native[group] != nil || known == nil || !isWhollyOrdinary(known)
			}
		}
	}
	return m
}

// add takes a resource, and its operations, for some of their subresources; "*" is all of them.
func (m *matchedVerbs) add(all []*Resource, subresource string) {
	m.named = append(m.named, "'"+all[0].GroupResource().String()+"'")
	for _, r := range all {
		subresources := []string{subresource}
		switch {
		case subresource == "*" && r.Operation != nil:
			subresources = []string{r.Operation.Subresource}
		case subresource == "*":
			subresources = append([]string{"", "status", "scale"}, r.Subresources.Other...)
		}
		for _, s := range subresources {
			verbs, isKnown := r.verbs(s)
			m.isOpen = m.isOpen || !isKnown
			for _, verb := range verbs {
				if !slices.Contains(m.verbs, verb.String()) {
					m.verbs = append(m.verbs, verb.String())
				}
			}
			if slices.Contains(verbs, resource.VerbUpdate) && s == "" && r.Writes.CreateOnUpdate &&
				!slices.Contains(m.verbs, creates) {
				m.verbs = append(m.verbs, creates)
			}
		}
	}
}

// verbs returns what a resource, or a subresource of its objects, can be asked for; false if the files do not say.
func (r *Resource) verbs(subresource string) (verbs []resource.Verb, isKnown bool) {
	if len(r.Paths) == 0 {
		return nil, false
	}
	return r.Verbs(subresource), true
}

// lacks says which verbs the resources have instead of the wanted ones.
func (m *matchedVerbs) lacks() string {
	var verbs []string
	for _, verb := range m.verbs {
		if verb != creates {
			verbs = append(verbs, verb)
		}
	}
	slices.Sort(verbs)
	of := strings.Join(m.named, ", ")
	if len(m.named) > MaxNamed {
		of = fmt.Sprintf("%s and %d more", strings.Join(m.named[:MaxNamed], ", "), len(m.named)-MaxNamed)
	}
	return fmt.Sprintf("matches nothing that the files describe: the only verbs of %s are %s", of,
		strings.Join(verbs, ", "))
}

// MaxNamed is how many resources a finding names.
const MaxNamed = 3

// WildcardIn returns the first name of a list that stands for all groups or resources; invalid if none does.
func WildcardIn(list document.Node) document.Node {
	for n := list.First(); n.Valid(); n = n.Next() {
		if name, _, _ := strings.Cut(n.Str(), "/"); name == AnyName {
			return n
		}
	}
	return document.Node{}
}
