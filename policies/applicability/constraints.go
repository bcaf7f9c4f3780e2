package applicability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/natives"
)

// constraint finds what no request has of what a constraint or a mutator of Gatekeeper matches.
func (j *judge) constraint(o *manifest.Object) {
	if group, _ := o.GroupVersion(); group != constraints.Group && group != constraints.MutationsGroup {
		return
	}
	match, _ := o.At("spec.match")
	applies, _ := o.At("spec.applyTo")
	for a := applies.First(); a.Valid(); a = a.Next() {
		if one, hasFailed := j.kinds(o, a, "groups"); !hasFailed {
			j.versions(o, manifest.Member(a, "versions"), &one)
		}
	}
	var m matched
	list := manifest.Member(match, "kinds")
	hasFailed := false
	for k := list.First(); k.Valid(); k = k.Next() {
		one, failed := j.kinds(o, k, "apiGroups")
		m.all, m.isOpen, hasFailed = append(m.all, one.all...), m.isOpen || one.isOpen, hasFailed || failed
	}
	if scope := manifest.Member(match, "scope"); scope.Valid() &&
		!slices.Contains([]string{"", AnyName, "Cluster", "Namespaced"}, scope.Str()) {
		j.By(UnknownName, o, finding.Warning, scope.Path(),
			"must be 'Cluster', 'Namespaced' or '*': any other value stands for both")
	}
	if source := manifest.Member(match, "source"); source.Is("Generated") {
		j.unlessUndescribed(o, source.Path(), "matches nothing: the gateway expands no objects that generate others")
	}
	if hasFailed || list.Len() == 0 {
		return // nothing more is known
	}
	j.scope(o, match, &m)
	j.namespaceSelector(o, manifest.Member(match, "namespaceSelector"), &m)
	j.objectSelector(o, manifest.Member(match, "labelSelector"), &m)
	isLocal := func(r *Resource) bool { return r.Namespaced || r.isNamespaces() }
	if m.isClosed() && !slices.ContainsFunc(m.all, isLocal) {
		none := fmt.Sprintf("no object of %s belongs to a namespace", kindsOf(m.all))
		if at := manifest.Member(match, "namespaces"); at.Len() > 0 {
			j.never(o, at.Path(), "matches nothing: %s", none)
		}
		if at := manifest.Member(match, "excludedNamespaces"); at.Len() > 0 {
			j.never(o, at.Path(), "excludes nothing: %s", none)
		}
	}
}

// kinds finds a kind that none of the groups of its block has, and reports whether it did. Of a mutator the list of
// groups has another name than of a constraint.
func (j *judge) kinds(o *manifest.Object, block document.Node, groupsKey string) (m matched, hasFailed bool) {
	list := manifest.Member(block, groupsKey)
	groups := OrAny(manifest.Texts(list))
	for g := list.First(); g.Valid(); g = g.Next() {
		hasFailed = j.group(o, g) || hasFailed
	}
	named := manifest.Member(block, "kinds")
	if named.Len() == 0 {
		m = j.named(groups, AnyName)
	}
	for k := named.First(); k.Valid(); k = k.Next() {
		if k.Is(AnyName) {
			one := j.named(groups, AnyName)
			m.add(one)
			continue
		}
		one := j.kind(groups, k.Str())
		if len(one.all) == 0 && !one.isOpen {
			hasFailed = !hasFailed && j.unknownKind(o, groups, k) || hasFailed
		}
		m.add(one)
	}
	return m, hasFailed
}

// kind returns what a kind means in some groups.
func (j *judge) kind(groups []string, name string) (m matched) {
	for _, group := range j.names.groups(groups) {
		for _, all := range j.names.resources[group] {
			for _, r := range all {
				if r.Names.Kind == name {
					m.all = append(m.all, r)
				}
			}
		}
	}
	for kind := range natives.Kinds {
		if kind.Kind == name && (slices.Contains(groups, AnyName) || slices.Contains(groups, kind.Group)) &&
			j.mayServe(kind.Group) {
			m.isOpen = true
		}
	}
	return m
}

// unknownKind finds a kind that no file describes in the groups of its block, and that is not one of Kubernetes' own
// which an upstream may serve. It reports whether it did.
func (j *judge) unknownKind(o *manifest.Object, groups []string, at document.Node) bool {
	const nothing = "matches nothing that the files describe"
	name, isAny := at.Str(), slices.Contains(groups, AnyName)
	known, plurals := map[string]bool{}, map[string]string{}
	isOwn, isClosed, mayServe := "", !isAny, isAny && j.leadsTo("/apis")
	for _, group := range j.names.groups(groups) {
		for plural, all := range j.names.resources[group] {
			for _, r := range all {
				known[r.Names.Kind], plurals[plural] = true, r.Names.Kind
			}
		}
		isClosed = isClosed && j.names.native[group] == nil && j.names.resources[group] != nil &&
			isWhollyOrdinary(j.names.resources[group])
		mayServe = mayServe || j.mayServe(group)
	}
	for kind := range natives.Kinds {
		if isAny || slices.Contains(groups, kind.Group) {
			known[kind.Kind], plurals[natives.Kinds[kind].Plural] = true, kind.Kind
			if kind.Kind == name {
				isOwn = groupPathOf(kind.Group)
			}
		}
	}
	like := manifest.Suggest(name, maps.Keys(known))
	if kind := plurals[name]; kind != "" {
		like = "; did you mean `" + kind + "`?"
	}
	which := "no group has a"
	if !isAny {
		which = "the group '" + groups[0] + "' has no"
	}
	if len(groups) > 1 {
		which = "none of the groups has a"
	}
	switch {
	case isOwn != "":
		j.never(o, at.Path(), "%s: no route leads to paths below '%s/'", nothing, isOwn)
	case like != "", isClosed:
		j.never(o, at.Path(), "%s: %s kind '%s'%s", nothing, which, name, like)
	case !j.isPlain || mayServe:
		return false // an API server, or what no file describes, may have it
	default:
		j.never(o, at.Path(), "%s: %s kind '%s', and no route leads to where an API server would have it", nothing,
			which, name)
	}
	return true
}

// audit finds what no request has of what the rules of an audit policy name.
func (j *judge) audit(o *manifest.Object) {
	if group, _ := o.GroupVersion(); group != auditGroup || o.Kind != "Policy" {
		return
	}
	rules, _ := o.At("rules")
	isOver := false
	for rule := rules.First(); rule.Valid(); rule = rule.Next() {
		if isOver {
			j.By(unreachableRule, o, finding.Error, rule.Path(),
				"can never apply: the rule before it matches every request")
			return
		}
		isOver = isForAll(rule)
		j.auditRule(o, rule)
	}
}

// isForAll reports whether a rule of an audit policy matches every request.
func isForAll(rule document.Node) bool {
	for _, key := range [...]string{"users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs"} {
		if manifest.Member(rule, key).Len() > 0 {
			return false
		}
	}
	return true
}

// auditRule finds what no request has of what a rule of an audit policy names.
func (j *judge) auditRule(o *manifest.Object, rule document.Node) {
	verbs := manifest.Member(rule, "verbs")
	for v := verbs.First(); v.Valid(); v = v.Next() {
		if !v.Is(AnyName) && !isAuditVerb(v.Str()) {
			like := manifest.Suggest(v.Str(), slices.Values(auditVerbs()))
			if lower := strings.ToLower(v.Str()); isAuditVerb(lower) {
				like = "; did you mean `" + lower + "`?"
			}
			j.By(UnknownName, o, finding.Error, v.Path(),
				"must be a verb of requests, such as 'create', or a method in lower case%s", like)
		}
	}
	var m matched
	resources := manifest.Member(rule, "resources")
	hasFailed := resources.Len() == 0
	for r := resources.First(); r.Valid(); r = r.Next() {
		group := manifest.Member(r, "group")
		isWrong := group.Valid() && j.group(o, group)
		names := manifest.Member(r, "resources")
		if names.Len() == 0 {
			one := j.named([]string{group.Str()}, AnyName)
			m.add(one)
		}
		for name := names.First(); name.Valid(); name = name.Next() {
			one, failed := j.resource(o, []string{group.Str()}, name, isWrong)
			m.all, m.isOpen, hasFailed = append(m.all, one.all...), m.isOpen || one.isOpen, hasFailed || failed
		}
		hasFailed = hasFailed || isWrong
	}
	namespaces := manifest.Member(rule, "namespaces")
	isLocal := func(r *Resource) bool { return r.Namespaced || r.isNamespaces() }
	if !hasFailed && namespaces.Len() > 0 && !slices.Contains(manifest.Texts(namespaces), "") && m.isClosed() &&
		!slices.ContainsFunc(m.all, isLocal) {
		j.never(o, namespaces.Path(), "matches nothing: no object of %s belongs to a namespace", kindsOf(m.all))
	}
	paths := manifest.Member(rule, "nonResourceURLs")
	for p := paths.First(); p.Valid(); p = p.Next() {
		if path := strings.TrimSuffix(p.Str(), AnyName); len(j.Routes) > 0 && !j.isAsked(path) {
			j.never(o, p.Path(), "matches nothing: no route takes the path")
		}
	}
}

// isAsked reports whether a route takes paths that begin with some text.
func (j *judge) isAsked(path string) bool {
	return slices.ContainsFunc(j.Routes, func(r Route) bool {
		prefix := strings.TrimSuffix(r.PathPrefix, "/")
		return strings.HasPrefix(prefix+"/", path) || strings.HasPrefix(path+"/", prefix+"/")
	})
}

// auditVerbs are the verbs that a rule of an audit policy may name.
func auditVerbs() []string {
	all := []string{"post", "put", "head", "trace", "query"}
	for v := range resource.Verbs {
		all = append(all, v.String())
	}
	return all
}

// isAuditVerb reports whether a request may have a verb of a rule of an audit policy.
func isAuditVerb(name string) bool { return slices.Contains(auditVerbs(), name) }

// source finds a StateSource whose collection no upstream has.
func (j *judge) source(o *manifest.Object) {
	if group, _ := o.GroupVersion(); group != ownGroup || o.Kind != "StateSource" || o.Text("spec.upstream") != "" ||
		len(j.Routes) == 0 {
		return
	}
	for _, s := range j.States {
		if s.Name != o.Name || s.Path == "" {
			continue
		}
		at := "spec.path"
		if r, found := o.At("spec.resource.resource"); found {
			at = r.Path()
			version := strings.Split(o.Text("spec.resource.apiVersion"), "/")
			group := ""
			if len(version) == 2 {
				group = version[0]
			}
			if _, hasFailed := j.resource(o, []string{group}, r, false); hasFailed {
				return
			}
		}
		path := SegmentsOf(s.Path)
		if !slices.ContainsFunc(j.Routes, func(r Route) bool {
			prefix := SegmentsOf(r.PathPrefix)
			return r.Host == "" && len(prefix) <= len(path) && slices.Equal(prefix, path[:len(prefix)])
		}) {
			j.By(unreachablePath, o, finding.Error, at, "no route for any host leads to '%s', and `spec.upstream` names no upstream: nothing can be read", s.Path)
		}
	}
}

// template finds an ErrorTemplate that no route and no resource names.
func (j *judge) template(o *manifest.Object) {
	if group, _ := o.GroupVersion(); group != ownGroup || o.Kind != "ErrorTemplate" || len(j.Routes) == 0 {
		return
	}
	isIts := func(r Resource) bool { return r.Errors.Template == o.Name }
	if !slices.ContainsFunc(j.Resources, isIts) &&
		!slices.ContainsFunc(j.Routes, func(r Route) bool { return r.ErrorTemplate == o.Name }) {
		j.By(unused, o, finding.Warning, "metadata.name", "no route of the configuration and no resource names the ErrorTemplate '%s', so that it writes nothing", o.Name)
	}
}
