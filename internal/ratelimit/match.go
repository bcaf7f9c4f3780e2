package ratelimit

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A reason says why a rule does not count a request.
type reason uint8

const (
	counted reason = iota // it does
	isNoResource
	onOtherRoutes
	ofOtherResources
	ofOtherVerbs
	inOtherNamespaces
	inExemptNamespace
	byExemptClient
	failsConditions
)

// says is the reason as operators read it, of a request with a method and a path alone.
func (why reason) says(i *resource.Info) string {
	switch why {
	case isNoResource:
		return "it names resources, and the path is none"
	case onOtherRoutes:
		return "its scope has other routes"
	case ofOtherResources:
		return "it is about other resources"
	case ofOtherVerbs:
		return "it is not about the verb '" + i.VerbName() + "'"
	case inOtherNamespaces:
		return "it is about other namespaces"
	case inExemptNamespace:
		return "the namespace '" + i.Namespace + "' is exempt"
	}
	return ""
}

// match returns why the rule does not count a request, for any user.
func (c *compiled) match(i *resource.Info, place *resource.RouteRef) reason {
	switch {
	case !i.IsResource && c.resourcesOnly:
		return isNoResource
	case !c.limit.Scope.IsOpen() && (place == nil || !c.limit.Scope.Covers(place)):
		return onOtherRoutes
	case !c.choosesResource(i) || !chooses(c.limit.APIGroups, i.Group):
		return ofOtherResources
	case !c.verbs.Has(i.Verb):
		return ofOtherVerbs
	case !chooses(c.limit.Namespaces, i.Namespace):
		return inOtherNamespaces
	case i.Namespace != "" && slices.Contains(c.limit.Exemptions.Namespaces, i.Namespace):
		return inExemptNamespace
	}
	return counted
}

// matchAll returns why the rule does not count a request.
func (c *compiled) matchAll(r *Request) reason {
	if why := c.match(r.Info, r.Route); why != counted {
		return why
	}
	if c.limit.Exemptions.include(r) {
		return byExemptClient
	}
	for _, condition := range c.limit.Conditions {
		f := r.Frame()
		if ok, err := condition.EvalBool(f, f.Vars()); err == nil && !ok {
			return failsConditions
		}
	}
	return counted
}

// include reports whether the client of a request is exempt.
func (e *Exemptions) include(r *Request) bool {
	for _, p := range e.Addresses {
		if p.Contains(r.ClientAddress.Unmap()) {
			return true
		}
	}
	if slices.Contains(e.Usernames, r.Username) {
		return true
	}
	return len(e.Groups) > 0 &&
		slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(e.Groups, g) })
}

func chooses(list []string, value string) bool { return slices.Contains(list, value) || open(list) }

func (c *compiled) choosesResource(i *resource.Info) bool {
	if open(c.limit.Resources) {
		return true
	}
	for _, name := range c.limit.Resources {
		main, sub, _ := strings.Cut(name, "/")
		if main == i.Resource && sub == i.Subresource {
			return true
		}
	}
	return false
}
