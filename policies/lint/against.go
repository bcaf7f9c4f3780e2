package lint

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

const compatible = "Clients and stored objects of the old version must go on to work."

// The ways in which a version breaks the previous one.
var (
	goneDefinition = &rule{"BREAK/removed", compatible, "Types (Kinds)", finding.Error}
	otherNames     = &rule{"BREAK/renamed", compatible, "Types (Kinds)", finding.Error}
	goneField      = &rule{"BREAK/field", compatible, "Types (Kinds)", finding.Error}
	otherType      = &rule{"BREAK/type", compatible, "Types (Kinds)", finding.Error}
	newlyRequired  = &rule{"BREAK/required", compatible, "Optional vs. Required", finding.Error}
	narrower       = &rule{"BREAK/narrower", compatible, "Validation", finding.Error}
	otherDefault   = &rule{"BREAK/default", compatible, "Defaulting", finding.Error}
	otherList      = &rule{"BREAK/list-type", compatible, "Lists of named subobjects preferred over maps", finding.Error}
	newRule        = &rule{"BREAK/rule", "A new rule refuses objects that the old version took; the update of a stored one is refused if it touches them.", "Validation", finding.Warning}
)

var breaks = []*rule{goneDefinition, otherNames, goneField, otherType, newlyRequired, narrower, otherDefault, otherList,
	newRule}

// Against returns what the definitions in new files break of the ones in old files.
func Against(old, now []source.File) []finding.Finding {
	l := &linter{}
	after := definitionsIn(now)
	for _, before := range definitionsIn(old) {
		i := slices.IndexFunc(after,
			func(d *definition) bool { return d.name == before.name && d.isCRD == before.isCRD })
		if i < 0 && !before.isCRD && len(after) == 1 {
			i = 0 // a document of another name
		}
		if i < 0 {
			l.definition = before
			l.found(goneDefinition, "", "must not be removed: the new files have no definition '%s'", before.name)
			continue
		}
		l.definition = after[i]
		l.compare(before, after[i])
	}
	return finding.Sort(l.Found)
}

// compare compares two versions of a definition.
func (l *linter) compare(before, after *definition) {
	old, now := before.from.Document().Root(), after.from.Document().Root()
	if before.isCRD {
		for _, path := range [][]string{{"spec", "group"}, {"spec", "scope"}, {"spec", "names", "kind"},
			{"spec", "names", "plural"}} {
			was, is := textOf(in(old, path...)), textOf(in(now, path...))
			if was != is {
				l.found(otherNames, in(now, path...).Path(), "must stay '%s', not become '%s'", was, is)
			}
		}
		for v := in(old, "spec", "versions").First(); v.Valid(); v = v.Next() {
			l.compareVersion(v, versionNamed(now, textOf(in(v, "name"))))
		}
		return
	}
	for _, s := range before.schemas {
		i := slices.IndexFunc(after.schemas, func(n *node) bool { return n.at.Key() == s.at.Key() })
		if i < 0 {
			l.found(goneDefinition, "", "must not be removed: there is no schema '%s'", s.at.Key())
			continue
		}
		l.compareSchemas(s, after.schemas[i])
	}
	for p := in(old, "paths").First(); p.Valid(); p = p.Next() {
		l.comparePath(p, in(now, "paths", p.Key()))
	}
}

func versionNamed(root document.Node, name string) document.Node {
	for v := in(root, "spec", "versions").First(); v.Valid(); v = v.Next() {
		if textOf(in(v, "name")) == name {
			return v
		}
	}
	return document.Node{}
}

func (l *linter) compareVersion(old, now document.Node) {
	name := textOf(in(old, "name"))
	switch {
	case in(old, "served").Valid() && !in(old, "served").Bool():
		return
	case !now.Valid():
		l.found(goneDefinition, "spec.versions", "must not be removed: there is no version '%s'", name)
		return
	case in(now, "served").Valid() && !in(now, "served").Bool():
		l.found(goneDefinition, in(now, "served").Path(), "must stay true: clients use the version '%s'", name)
	}
	if in(old, "subresources", "status").Valid() && !in(now, "subresources", "status").Valid() {
		l.found(goneDefinition, now.Path(), "must keep the subresource `status`")
	}
	was, is := in(old, "schema", "openAPIV3Schema"), in(now, "schema", "openAPIV3Schema")
	if was.Valid() && is.Valid() {
		l.compareSchemas(schemaAt(was, "", nil, true), schemaAt(is, "", nil, true))
	}
}

// methods are the keys of a path of an OpenAPI document that are operations.
var methods = []string{"get", "put", "post", "delete", "patch", "head", "options"}

func (l *linter) comparePath(old, now document.Node) {
	if !now.Valid() {
		l.found(goneDefinition, "paths", "must not be removed: there is no path '%s'", old.Key())
		return
	}
	for o := old.First(); o.Valid(); o = o.Next() {
		if !slices.Contains(methods, o.Key()) {
			continue
		}
		is := in(now, o.Key())
		if !is.Valid() {
			l.found(goneDefinition, now.Path(), "must not be removed: there is no operation '%s'", o.Key())
			continue
		}
		for p := in(is, "parameters").First(); p.Valid(); p = p.Next() {
			required := in(p, "required")
			if required.Valid() && required.Bool() && !hasParameter(o, p) {
				l.found(newlyRequired, p.Path(), "must not be required: clients do not send the parameter '%s' yet",
					textOf(in(p, "name")))
			}
		}
	}
}

func hasParameter(operation, parameter document.Node) bool {
	for p := in(operation, "parameters").First(); p.Valid(); p = p.Next() {
		if textOf(in(p, "name")) == textOf(in(parameter, "name")) &&
			textOf(in(p, "in")) == textOf(in(parameter, "in")) {
			required := in(p, "required")
			return required.Valid() && required.Bool()
		}
	}
	return false
}

// compareSchemas compares two versions of a schema.
func (l *linter) compareSchemas(old, now *node) {
	if was, is := old.typeOf(), now.typeOf(); was != is && was != "" {
		l.found(otherType, now.path, "must stay %s, not become %s", was, orAny(is))
		return
	}
	l.compareBounds(old, now)
	for _, keyword := range []string{"format", "pattern"} {
		if was, is := textOf(in(old.at, keyword)), textOf(in(now.at, keyword)); was != is && is != "" {
			l.found(narrower, now.path, "must keep its %s: '%s' may refuse what the old version took", keyword, is)
		}
	}
	l.compareEnums(old, now)
	if was, is := in(old.at, "default"), in(now.at, "default"); was.Valid() &&
		(!is.Valid() || string(was.AppendRaw(nil)) != string(is.AppendRaw(nil))) {
		l.found(otherDefault, now.path, "must keep the default %s", was.AppendRaw(nil))
	}
	for _, keyword := range []string{"x-kubernetes-list-type", "x-kubernetes-list-map-keys"} {
		if was, is := in(old.at, keyword), in(now.at, keyword); was.Valid() &&
			(!is.Valid() || string(was.AppendRaw(nil)) != string(is.AppendRaw(nil))) {
			l.found(otherList, now.path, "must keep `%s`, which is %s", keyword, was.AppendRaw(nil))
		}
	}
	for _, keyword := range []string{"nullable", "x-kubernetes-preserve-unknown-fields"} {
		if old.is(keyword) && !now.is(keyword) {
			l.found(narrower, now.path, "must keep `%s`", keyword)
		}
	}
	l.compareRules(old, now)
	l.compareMembers(old, now)
	if old.item != nil && now.item != nil {
		l.compareSchemas(old.item, now.item)
	}
	if old.value != nil && now.value != nil {
		l.compareSchemas(old.value, now.value)
	}
}

func orAny(kind string) string {
	if kind == "" {
		return "any type"
	}
	return kind
}

func (l *linter) compareMembers(old, now *node) {
	for _, was := range old.members {
		is := now.member(was.name)
		if is == nil {
			if !now.is("x-kubernetes-preserve-unknown-fields") {
				l.found(goneField, now.path, "must keep the field '%s'", was.name)
			}
			continue
		}
		l.compareSchemas(was, is)
	}
	for _, is := range now.members {
		was := old.member(is.name)
		if is.isRequired && (was == nil || !was.isRequired) && !is.has("default") {
			l.found(newlyRequired, is.path, "must not be required: objects of the old version may lack it")
		}
	}
}

// compareBounds compares the keywords that hold limits.
func (l *linter) compareBounds(old, now *node) {
	for i, keyword := range []string{"minimum", "minLength", "minItems", "minProperties", "maximum", "maxLength",
		"maxItems", "maxProperties"} {
		is, has := number(in(now.at, keyword))
		was, had := number(in(old.at, keyword))
		if !has || had && (i < 4 && is <= was || i >= 4 && is >= was) {
			continue
		}
		from := "unbounded"
		if had {
			from = fmt.Sprint(was)
		}
		l.found(narrower, now.path, "must not narrow `%s` from %s to %v", keyword, from, is)
	}
}

func number(n document.Node) (float64, bool) {
	if !n.Valid() || n.Kind() != document.Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n.Raw()), 64)
	return f, err == nil
}

func (l *linter) compareEnums(old, now *node) {
	if !now.has("enum") {
		return
	}
	allowed := map[string]bool{}
	for e := in(now.at, "enum").First(); e.Valid(); e = e.Next() {
		allowed[string(e.AppendRaw(nil))] = true
	}
	if !old.has("enum") {
		l.found(narrower, now.path, "must not become an enumeration")
		return
	}
	for e := in(old.at, "enum").First(); e.Valid(); e = e.Next() {
		if !allowed[string(e.AppendRaw(nil))] {
			l.found(narrower, now.path, "must keep the value %s", e.AppendRaw(nil))
		}
	}
}

// compareRules finds rules that the old version did not have.
func (l *linter) compareRules(old, now *node) {
	had := map[string]bool{}
	for r := in(old.at, "x-kubernetes-validations").First(); r.Valid(); r = r.Next() {
		had[textOf(in(r, "rule"))] = true
	}
	for r := in(now.at, "x-kubernetes-validations").First(); r.Valid(); r = r.Next() {
		if !had[textOf(in(r, "rule"))] {
			l.found(newRule, r.Path(), "may refuse objects that the old version took")
		}
	}
}
