package applicability

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/finding"
)

// leadsTo reports whether a route leads to some path at or below one, as upstreams get it. Without a configuration any
// may.
func (x *Index) leadsTo(path string) bool {
	if len(x.Routes) == 0 {
		return true
	}
	return slices.ContainsFunc(x.Routes, func(r Route) bool {
		return meets(r, append(SegmentsOf(path), "{}", "{}", "{}", "{}", "{}", "{}"))
	})
}

// isRouted reports whether a route is for paths below one alone, so that its author knows of them.
func (x *Index) isRouted(path string) bool {
	return slices.ContainsFunc(x.Routes, func(r Route) bool {
		target := r.target()
		return len(target) > 0 && strings.HasPrefix(path+"/", "/"+strings.Join(target, "/")+"/")
	})
}

// IsReached finds the paths of descriptions that no route leads to.
func (x *Index) IsReached() []finding.Finding {
	j := &judge{Index: x}
	for o, p := range x.lostPaths() {
		if len(p.lost) > 0 && !x.IsUnused(o) {
			j.unreached(o, p)
		}
	}
	return j.Found
}

// unreached records the paths of an object that no route leads to.
func (j *judge) unreached(o *manifest.Object, p *lostPaths) {
	if j.isReferredTo(o) {
		return
	}
	severity := finding.Error
	if len(p.lost) < p.all {
		severity = finding.Warning // the rest of it is in force
	}
	j.By(unreachablePath, o, severity, p.at, "no route leads to %s: %s", someOf(p.lost), j.routesOf(p.scope, p.lost[0]))
}

// lostPaths returns, of each description, the paths that no route leads to.
func (x *Index) lostPaths() map[*manifest.Object]*lostPaths {
	if len(x.Routes) == 0 {
		return nil
	}
	found := map[*manifest.Object]*lostPaths{}
	note := func(o *manifest.Object, place, path string, scope *resource.Scope, paths ...string) {
		if !x.covers(scope) {
			return // which is found by the names in the scope
		}
		p := found[o]
		if p == nil {
			p = &lostPaths{}
			found[o] = p
		}
		if p.all++; !x.leadsToAny(scope, paths) {
			if p.lost = append(p.lost, path); len(p.lost) == 1 {
				p.at, p.scope = place, scope
			}
		}
	}
	for i := range x.Resources {
		r := &x.Resources[i]
		if len(r.Paths) == 0 {
			note(r.From, "spec.group", KubernetesPath(r.Resource), &r.Scope, KubernetesPaths(r.Resource)...)
		}
		for k, path := range r.Paths {
			said := path
			if k < len(r.Written.Routes) {
				said = r.Written.Routes[k]
			}
			note(r.From, PathOf(r, said), said, &r.Scope, path)
		}
	}
	for i := range x.Operations {
		d := &x.Operations[i]
		note(d.From, d.At, d.Template, &d.Scope, d.Template)
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
	if len(paths) > MaxNamed {
		return fmt.Sprintf("%s and %d more paths", finding.Quoted(paths[:MaxNamed]), len(paths)-MaxNamed)
	}
	return finding.Quoted(paths)
}

// PathOf returns where a file says the path of a resource.
func PathOf(r *Resource, path string) string {
	switch {
	case r.From.Kind != "APIResource":
		if _, found := r.From.At("paths[" + path + "]"); found {
			return "paths[" + path + "]"
		}
		return r.At
	case r.Operation != nil:
		return r.At + ".path"
	case strings.Contains(path, "{name}") || r.Singleton:
		return "spec.paths.item"
	}
	return "spec.paths.collection"
}

// KubernetesPath returns the path of the objects of a resource at an API server.
func KubernetesPath(r *resource.Resource) string {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if r.Namespaced {
		path += "/namespaces/{namespace}"
	}
	return path + "/" + r.Names.Plural
}

// KubernetesPaths returns the paths of a resource at an API server.
func KubernetesPaths(r *resource.Resource) []string {
	path := KubernetesPath(r)
	if !r.Namespaced {
		return []string{path, path + "/{name}"}
	}
	return []string{path, path + "/{name}", strings.Replace(path, "/namespaces/{namespace}", "", 1)}
}

// covers reports whether the requests of some route are in a scope. A scope that no route is in is found by the names
// in it.
func (x *Index) covers(s *resource.Scope) bool {
	return slices.ContainsFunc(x.Routes, func(r Route) bool { return s.Covers(r.Place()) })
}

// leadsToAny reports whether requests for one of some paths come by a route of a scope.
func (x *Index) leadsToAny(s *resource.Scope, paths []string) bool {
	routes := x.Routes
	return slices.ContainsFunc(routes,
		func(r Route) bool { return s.Covers(r.Place()) && ServedBy(r, paths, routes) != "" })
}

// routesOf says which paths the routes of a scope lead to, instead of a path, and what may be meant.
func (x *Index) routesOf(s *resource.Scope, path string) string {
	var led []string
	hint := ""
	for i := range x.Routes {
		r := &x.Routes[i]
		if !s.Covers(r.Place()) {
			continue
		}
		to := "/" + strings.Join(r.target(), "/")
		led = append(led, fmt.Sprintf("'%s' gets paths at and below '%s' by %s", r.Upstream, to, r.Words()))
		prefix := strings.TrimSuffix(r.PathPrefix, "/")
		before, isKept := strings.CutSuffix(to, prefix)
		if stripped := (Route{PathPrefix: "/", Target: before + "/"}); prefix != "" && isKept && !r.Kubernetes &&
			hint == "" && SegmentsOf(prefix)[0] != SegmentsOf(path)[0] && meets(stripped, SegmentsOf(path)) {
			hint = fmt.Sprintf("; if '%s' is no part of the API's own paths, set `stripPrefix: true` on that route", prefix)
		}
	}
	if more := len(led) - MaxNamed; more > 0 {
		led = append(led[:MaxNamed], fmt.Sprintf("and %d more routes lead elsewhere", more))
	}
	return strings.Join(led, ", ") + hint
}

// isReferredTo reports whether an object defines a kind that policies refer to, or of which the files have objects.
func (x *Index) isReferredTo(o *manifest.Object) bool {
	if o.Kind != "CustomResourceDefinition" {
		return false
	}
	of := schema.GroupKind{Group: o.Text("spec.group"), Kind: o.Text("spec.names.kind")}
	if strings.HasSuffix(of.Group, ".gatekeeper.sh") || of.Group == ownGroup {
		return true // what an installation brings with it
	}
	return x.HeldKinds[of] || x.ParamKinds[of]
}
