package policies

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
)

// inForce finds what can never apply of what the files say. What the files and the configuration prove is an error. What an API
// server decides, which may have resources that no file describes, is a warning.
type inForce struct {
	*findings
	l      *loader
	names  *describedNames
	routes []Route
	// isPlain says that every route leads to an ordinary API.
	isPlain bool
	// namespaces are the Namespaces of the files; hasNamespaces says that others may be known.
	namespaces    []*manifest.Object
	hasNamespaces bool
	known         map[objectID]*manifest.Object
	// isMeant reports whether it is meant that an object may never apply.
	isMeant func(*manifest.Object) bool
}

func newInForce(l *loader) *inForce {
	j := &inForce{findings: &l.findings, l: l, names: newDescribedNames(l.resources), routes: l.gateway.Routes, isMeant: l.isMeant}
	j.known = l.known
	for id, o := range l.known {
		if id.group == "" && id.kind == "Namespace" {
			j.namespaces = append(j.namespaces, o)
		}
	}
	isNamespace := func(group, kind string) bool { return group == "" && kind == "Namespace" }
	j.hasNamespaces = slices.ContainsFunc(l.resources, func(r loadedResource) bool { return isNamespace(r.Group, r.Names.Kind) }) ||
		slices.ContainsFunc(l.set.states, func(s *state.Source) bool { return isNamespace(s.Kind.Group, s.Kind.Kind) })
	j.isPlain = len(j.routes) > 0 && !slices.ContainsFunc(j.routes, func(r Route) bool { return r.Kubernetes })
	return j
}

// objects judges the match blocks of objects.
func (j *inForce) objects(all iter.Seq[*manifest.Object]) {
	for o := range all {
		if j.isMeant(o) {
			continue
		}
		var m matched
		blocks := matchBlocks(o)
		for _, b := range blocks {
			one := j.block(o, b)
			m.all, m.isOpen = append(m.all, one.all...), m.isOpen || one.isOpen
		}
		j.selections(o, &m)
		j.constraint(o)
		j.audit(o)
		j.source(j.l, o)
		j.template(j.l, o)
		switch group, _ := o.GroupVersion(); {
		case group == admissionRegistrationGroup && strings.HasSuffix(o.Kind, "Binding"):
			j.apartFrom(o, "spec.matchResources", j.policies(strings.TrimSuffix(o.Kind, "Binding"), textAt(o, "spec.policyName")))
		case group == ownGroup && o.Kind == "PolicyException":
			refs, _ := o.At("spec.policies")
			var excepted []*manifest.Object
			for ref := refs.First(); ref.Valid(); ref = ref.Next() {
				excepted = append(excepted, j.policies(memberOf(ref, "kind").Str(), textsIn(memberOf(ref, "names"))...)...)
			}
			j.apartFrom(o, "spec.matchConstraints", excepted)
		}
	}
}

// policies returns the policies of a kind that have one of some names.
func (j *inForce) policies(kind string, names ...string) (all []*manifest.Object) {
	for _, name := range names {
		for _, group := range [...]string{admissionRegistrationGroup, ownGroup} {
			if p := j.known[objectID{group: group, kind: kind, name: name}]; p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// never records that something can never apply.
func (j *inForce) never(o *manifest.Object, path, format string, args ...any) {
	severity := Warning
	if j.isPlain {
		severity = Error
	}
	j.At(o, severity, path, format, args...)
}

// seldom records that something applies to nothing that the files describe, though it may apply to what they do not.
func (j *inForce) seldom(o *manifest.Object, path, format string, args ...any) {
	j.At(o, Warning, path, format, args...)
}

// The mark that it is meant if an object, or the files of a folder, can never apply.
const (
	unusedMark     = "admission-gateway.io" + unusedName
	unusedName     = "/unused"
	unusedKey      = "x-admission-gateway-unused" // of a document
	allowedMark    = "Allow"
	annotationsKey = "metadata.annotations"
	labelsKey      = "metadata.labels"
)

// isMeant reports whether it is meant that an object may never apply.
func (l *loader) isMeant(o *manifest.Object) bool {
	if l.unused[o.File] {
		return true
	}
	n, _ := markOf(o)
	return n.Is(allowedMark)
}

// markOf returns the mark of an object, and its path.
func markOf(o *manifest.Object) (n document.Node, path string) {
	if o.OpenAPI {
		n, _ = o.At(unusedKey)
		return n, unusedKey
	}
	if !o.IsAnnotated || !bytes.Contains(o.JSON, []byte(unusedName)) {
		return n, ""
	}
	for _, at := range [...]string{annotationsKey, labelsKey} {
		all, _ := o.At(at)
		if n, found := all.Get(unusedMark); found {
			return n, at + "[" + unusedMark + "]"
		}
	}
	return n, ""
}

// checkMark finds a mark that says something else.
func (l *loader) checkMark(o *manifest.Object) {
	if n, path := markOf(o); n.Valid() && !n.Is(allowedMark) {
		l.At(o, Error, path, "must be 'Allow'")
	}
}

// leadsTo reports whether a route leads to some path at or below one, as upstreams get it. Without a configuration any may.
func (j *inForce) leadsTo(path string) bool {
	if len(j.routes) == 0 {
		return true
	}
	return slices.ContainsFunc(j.routes, func(r Route) bool {
		return meets(r, append(segmentsOf(path), "{}", "{}", "{}", "{}", "{}", "{}"))
	})
}

// isRouted reports whether a route is for paths below one alone, so that its author knows of them.
func (j *inForce) isRouted(path string) bool {
	return slices.ContainsFunc(j.routes, func(r Route) bool {
		target := r.target()
		return len(target) > 0 && strings.HasPrefix(path+"/", "/"+strings.Join(target, "/")+"/")
	})
}

// unreached finds paths of descriptions that no route leads to.
func (l *loader) unreached() {
	for o, p := range l.lostPaths() {
		if len(p.lost) > 0 && !l.isMeant(o) {
			l.lose(&l.findings, o, p)
		}
	}
}

// lose records the paths of an object that no route leads to.
func (l *loader) lose(f *findings, o *manifest.Object, p *lostPaths) {
	if l.isReferredTo(o) {
		return
	}
	severity := Error
	if len(p.lost) < p.all {
		severity = Warning // the rest of it is in force
	}
	f.At(o, severity, p.at, "no route leads to %s: %s", someOf(p.lost), l.led(p.scope, p.lost[0]))
}

// lostPaths returns, of each description, the paths that no route leads to.
func (l *loader) lostPaths() map[*manifest.Object]*lostPaths {
	if len(l.gateway.Routes) == 0 {
		return nil
	}
	found := map[*manifest.Object]*lostPaths{}
	note := func(o *manifest.Object, place, path string, scope *resource.Scope, paths ...string) {
		if !l.covers(scope) {
			return // which is found by the names in the scope
		}
		p := found[o]
		if p == nil {
			p = &lostPaths{}
			found[o] = p
		}
		if p.all++; !l.leadsToAny(scope, paths) {
			if p.lost = append(p.lost, path); len(p.lost) == 1 {
				p.at, p.scope = place, scope
			}
		}
	}
	for i := range l.resources {
		r := &l.resources[i]
		if len(r.Paths) == 0 {
			note(r.at.from, "spec.group", kubernetesPathOf(r.Resource), &r.Scope, kubernetesPaths(r.Resource)...)
		}
		for k, path := range r.Paths {
			said := path
			if k < len(r.Written.Routes) {
				said = r.Written.Routes[k]
			}
			note(r.at.from, placeOfPath(r, said), said, &r.Scope, path)
		}
	}
	for i := range l.documented {
		d := &l.documented[i]
		note(d.at.from, d.at.path, d.Template, &d.Scope, d.Template)
	}
	return found
}

// lostPaths are the paths of a description that no route leads to.
type lostPaths struct {
	all   int // paths of the description
	lost  []string
	at    string // where the file says the first of them
	scope *resource.Scope
}

// someOf names the first of some paths.
func someOf(paths []string) string {
	if len(paths) > maxNamed {
		return fmt.Sprintf("%s and %d more paths", quoted(paths[:maxNamed]), len(paths)-maxNamed)
	}
	return quoted(paths)
}

// placeOfPath returns where a file says the path of a resource.
func placeOfPath(r *loadedResource, path string) string {
	switch {
	case r.at.from.Kind != "APIResource":
		if _, found := r.at.from.At("paths[" + path + "]"); found {
			return "paths[" + path + "]"
		}
		return r.at.path
	case r.Operation != nil:
		return r.at.path + ".path"
	case strings.Contains(path, "{name}") || r.Singleton:
		return "spec.paths.item"
	}
	return "spec.paths.collection"
}

// kubernetesPaths returns the paths of a resource at an API server.
func kubernetesPaths(r *resource.Resource) []string {
	path := kubernetesPathOf(r)
	if !r.Namespaced {
		return []string{path, path + "/{name}"}
	}
	return []string{path, path + "/{name}", strings.Replace(path, "/namespaces/{namespace}", "", 1)}
}

// covers reports whether the requests of some route are in a scope. A scope without one is found by its names.
func (l *loader) covers(s *resource.Scope) bool {
	return slices.ContainsFunc(l.gateway.Routes, func(r Route) bool { return s.Covers(r.place()) })
}

// leadsToAny reports whether requests for one of some paths come by a route of a scope.
func (l *loader) leadsToAny(s *resource.Scope, paths []string) bool {
	routes := l.gateway.Routes
	return slices.ContainsFunc(routes, func(r Route) bool { return s.Covers(r.place()) && servedBy(r, paths, routes) != "" })
}

// led says where the routes of a scope lead instead of to a path, and what may be meant.
func (l *loader) led(s *resource.Scope, path string) string {
	var led []string
	hint := ""
	for i := range l.gateway.Routes {
		r := &l.gateway.Routes[i]
		if !s.Covers(r.place()) {
			continue
		}
		to := "/" + strings.Join(r.target(), "/")
		led = append(led, fmt.Sprintf("'%s' gets paths at and below '%s' by %s", r.Upstream, to, r.words()))
		prefix := strings.TrimSuffix(r.PathPrefix, "/")
		before, isKept := strings.CutSuffix(to, prefix)
		if stripped := (Route{PathPrefix: "/", Target: before + "/"}); prefix != "" && isKept && !r.Kubernetes && hint == "" && segmentsOf(prefix)[0] != segmentsOf(path)[0] && meets(stripped, segmentsOf(path)) {
			hint = fmt.Sprintf("; if '%s' is no part of the API's own paths, set `stripPrefix: true` on that route", prefix)
		}
	}
	if more := len(led) - maxNamed; more > 0 {
		led = append(led[:maxNamed], fmt.Sprintf("and %d more routes lead elsewhere", more))
	}
	return strings.Join(led, ", ") + hint
}

// isReferredTo reports whether an object defines a kind that policies refer to, or of which the files have objects.
func (l *loader) isReferredTo(o *manifest.Object) bool {
	if o.Kind != "CustomResourceDefinition" {
		return false
	}
	of := schema.GroupKind{Group: textAt(o, "spec.group"), Kind: textAt(o, "spec.names.kind")}
	if strings.HasSuffix(of.Group, ".gatekeeper.sh") || of.Group == ownGroup {
		return true // what an installation brings with it
	}
	for id := range l.objects {
		if id.group == of.Group && id.kind == of.Kind {
			return true
		}
	}
	return slices.ContainsFunc(l.paramUses, func(u paramUse) bool {
		kind, ok := params.Kind(u.kind)
		return ok && kind.GroupKind() == of
	})
}
