package policies

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// unconvertible warns of policies that requests in another version concern (`matchPolicy: Equivalent`), and that cannot
// see them in a version that their rules name. Such requests go by the policies' failurePolicy.
func unconvertible(resources []loadedResource, objects iter.Seq[*manifest.Object]) []Finding {
	var f findings
	versions := map[schema.GroupResource][]string{}
	for i := range resources {
		if r := &resources[i]; r.Operation == nil && !r.compiled.convertible {
			versions[r.GroupResource()] = append(versions[r.GroupResource()], r.Version)
		}
	}
	maps.DeleteFunc(versions, func(_ schema.GroupResource, all []string) bool { return len(all) < 2 })
	if len(versions) == 0 {
		return nil
	}
	inOrder := slices.SortedFunc(maps.Keys(versions),
		func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	for o := range objects {
		if policy, _ := o.At("spec.matchConstraints.matchPolicy"); policy.Is("Exact") {
			continue
		}
		rules, _ := o.At("spec.matchConstraints.resourceRules")
		for _, of := range inOrder {
			warnOfVersions(&f, o, rules, of, versions[of])
		}
	}
	return f.Found
}

// warnOfVersions warns of a policy whose rules name some versions of a resource, and not others.
func warnOfVersions(f *findings, o *manifest.Object, rules document.Node, of schema.GroupResource, all []string) {
	var first document.Node
	others := slices.Clone(all)
	for r := rules.First(); r.Valid(); r = r.Next() {
		groups, _ := r.Get("apiGroups")
		names, _ := r.Get("resources")
		if !applicability.Lists(groups, of.Group) || !applicability.Lists(names, of.Resource) &&
			!applicability.Lists(names, of.Resource+"/status") && !applicability.Lists(names, "*/*") {
			continue
		}
		named, found := r.Get("apiVersions")
		if !found {
			return
		}
		if !first.Valid() {
			first = named
		}
		others = slices.DeleteFunc(others, func(v string) bool { return applicability.Lists(named, v) })
	}
	if !first.Valid() || len(others) == 0 || len(others) == len(all) {
		return
	}
	slices.Sort(others)
	f.At(o, Warning, first.Path(), "requests for '%s' in version '%s' go by `failurePolicy`: the gateway cannot convert them to a version that is named here, "+
		"as only a webhook could; name every version, or set `matchPolicy: Exact`", of, strings.Join(others, "', '"))
}
