package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/reword"
)

// schema checks a schema and the schemas in it.
func (l *linter) schema(s *node) {
	isMeta := s.parent != nil && s.parent.parent == nil && s.parent.part != items &&
		slices.Contains([]string{"apiVersion", "kind", "metadata"}, s.name)
	if isMeta {
		return // of Kubernetes' own form
	}
	if s.part == member {
		l.name(s)
	}
	l.primitive(s)
	l.collection(s)
	l.reference(s)
	l.presence(s)
	l.wording(s)
	for _, m := range s.members {
		l.schema(m)
	}
	if s.item != nil {
		l.schema(s.item)
	}
	if s.value != nil {
		l.schema(s.value)
	}
}

// primitive checks the types of values (LINT-4, LINT-5).
func (l *linter) primitive(s *node) {
	switch s.typeOf() {
	case "number":
		l.found(floatingPoint, s.path, "must not be a floating-point number: use an integer of a smaller unit, or a string with a format")
	case "boolean":
		l.found(booleanFields, s.path, "may be better as a string with named alternatives")
	case "integer":
		if strings.HasPrefix(textOf(in(s.at, "format")), "uint") {
			l.found(unsignedIntegers, s.path, "must be an int32 or int64 with a minimum, not '%s'",
				textOf(in(s.at, "format")))
		} else if !s.has("enum") && (!s.has("minimum") || !s.has("maximum")) {
			l.found(integerBounds, s.path, "must have `minimum` and `maximum`")
		}
	}
	if s.typeOf() != "string" {
		return
	}
	if l.usage != nil {
		if in(s.at, "enum").Valid() && !isOneStyle(in(s.at, "enum")) {
			l.found(enumValues, s.path+".enum", "must have values that are all written in one way")
		}
		return
	}
	var wrong []string
	for e := in(s.at, "enum").First(); e.Valid(); e = e.Next() {
		if text := textOf(e); text != "" && text != "*" && !camelValue.MatchString(text) && !isGiven(s.name, text) {
			wrong = append(wrong, text)
		}
	}
	if len(wrong) > 0 {
		l.found(enumValues, s.path+".enum", "must be CamelCase: '%s'", strings.Join(wrong, "', '"))
	}
}

var (
	camelValue = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// given are values that others have named: names of the form of eBPF, versions, groups, protocols such as DNS-01.
	given = regexp.MustCompile(`^([a-z][A-Z]\w*|[vV]?[0-9]+(\.[0-9]+)*|[a-z0-9-]+(\.[a-z0-9-]+)+|[A-Z]+-[0-9]+|https?)$`)
)

// isGiven reports whether the value of a member is a name that its author did not choose.
func isGiven(member, text string) bool {
	return given.MatchString(text) || member == "resource" || member == "resources"
}

// isOneStyle reports whether the texts among values are all in lower case, all in upper case, all in camelCase, or
// begin all with a capital.
func isOneStyle(values document.Node) bool {
	lower, upper, camel, capital := true, true, true, true
	for e := values.First(); e.Valid(); e = e.Next() {
		text := textOf(e)
		isLower, isUpper := text == strings.ToLower(text), text == strings.ToUpper(text)
		if isLower && isUpper { // no letters
			continue
		}
		lower, upper = lower && isLower, upper && isUpper
		camel, capital = camel && camelCase.form.MatchString(text), capital && text[0] >= 'A' && text[0] <= 'Z'
	}
	return lower || upper || camel || capital
}

// collection checks lists and maps (LINT-6).
func (l *linter) collection(s *node) {
	if s.isCRD && s.typeOf() == "array" && !s.has("x-kubernetes-list-type") {
		l.found(listTypes, s.path, "must have `x-kubernetes-list-type`")
	}
	if s.value != nil && s.value.typeOf() == "object" && len(s.value.members) > 0 {
		l.found(objectMaps, s.path, "must be a list of objects with a `name`, not a map of objects")
	}
	if s.name == "conditions" && s.typeOf() == "array" && s.parent != nil && s.parent.name == "status" && s.isCRD {
		keyed := in(s.at, "x-kubernetes-list-map-keys").First()
		if textOf(in(s.at, "x-kubernetes-list-type")) != "map" || textOf(keyed) != "type" || keyed.Next().Valid() {
			l.found(conditionLists, s.path, "must be a list of the type 'map' with the key 'type'")
		}
	}
}

// reference checks references to other objects (LINT-7).
func (l *linter) reference(s *node) {
	if !s.isCRD || s.typeOf() != "object" || s.parent == nil || s.member("name") == nil || s.name == "metadata" {
		return
	}
	isNamed := strings.HasSuffix(s.name, "Ref") || strings.HasSuffix(s.name, "Refs")
	others := slices.ContainsFunc(s.members, func(m *node) bool {
		return !slices.Contains([]string{"name", "namespace", "kind", "group", "apiGroup", "apiVersion", "resource",
			"uid", "fieldPath", "resourceVersion"}, m.name)
	})
	if others || !isNamed && s.member("kind") == nil && s.member("namespace") == nil {
		return // an object of its own
	}
	if !isNamed && s.part != items {
		l.found(referenceNames, s.path, "must be named as in '%sRef'", strings.TrimSuffix(s.name, "Reference"))
	}
	if s.member("namespace") != nil && !l.isAgreed(s) {
		l.found(crossReferences, s.path, "must not name a namespace without a way for its owner to agree")
	}
	if s.member("kind") != nil && s.member("group") == nil && s.member("apiGroup") == nil &&
		s.member("apiVersion") == nil {
		l.found(kindsWithoutGroup, s.path, "must have `group` beside `kind`")
	}
}

// isAgreed reports whether a reference into another namespace gives nothing away: it is reported and not asked for, its
// author is an administrator, or the owner of what it names has to grant it. A parent says whose children it takes.
func (l *linter) isAgreed(s *node) bool {
	top := s
	for top.parent != nil && top.parent.parent != nil {
		top = top.parent
	}
	grants := func(n *node) bool { return strings.Contains(textOf(in(n.at, "description")), "ReferenceGrant") }
	scope := textOf(in(l.definition.from.Document().Root(), "spec", "scope"))
	return top.name == "status" || strings.HasPrefix(s.name, "parentRef") || scope == "Cluster" || grants(s) ||
		grants(s.member("namespace"))
}

// presence checks what is required, defaulted or held by the whole object (LINT-8).
func (l *linter) presence(s *node) {
	if s.has("default") && s.isRequired && !s.isConstant() {
		l.found(requiredValue, s.path, "must not be required, because it has a default")
	}
	if s.has("default") && s.parent != nil && isUnion(s.parent, s.name) {
		l.found(unionDefault, s.path, "must not have a default, because it is a member of a union")
	}
	if s.name == "items" && s.isCRD && s.parent != nil && s.parent.parent == nil && !l.isList() {
		l.found(itemsMembers, s.path, "must be the member of a list, or have another name")
	}
	if s.name == "phase" && s.parent != nil && s.parent.name == "status" {
		l.found(phaseFields, s.path, "must be a condition")
	}
}

// isList reports whether the schema of a whole object is one of a list.
func (l *linter) isList() bool {
	kind := textOf(in(l.definition.from.Document().Root(), "spec", "names", "kind"))
	return strings.HasSuffix(kind, "List")
}

// isConstant reports whether the schema allows one value alone.
func (s *node) isConstant() bool {
	values := in(s.at, "enum")
	return s.has("const") || values.First().Valid() && !values.First().Next().Valid()
}

// isUnion reports whether a member is one of a union: of alternatives by oneOf, or by the gateway's own keyword.
func isUnion(s *node, name string) bool {
	for m := in(s.at, "x-admission-gateway-union", "members").First(); m.Valid(); m = m.Next() {
		if textOf(in(m, "field")) == name {
			return true
		}
	}
	for one := in(s.at, "oneOf").First(); one.Valid(); one = one.Next() {
		for r := in(one, "required").First(); r.Valid(); r = r.Next() {
			if textOf(r) == name {
				return true
			}
		}
	}
	return false
}

// wording checks the messages of rules (LINT-9).
func (l *linter) wording(s *node) {
	for r := in(s.at, "x-kubernetes-validations").First(); r.Valid(); r = r.Next() {
		n := in(r, "message")
		if n.Kind() != document.String {
			continue
		}
		if advice := reword.Advice(n.Str()); advice != "" {
			l.found(messageWording, n.Path(), "%s", advice)
		}
	}
}
