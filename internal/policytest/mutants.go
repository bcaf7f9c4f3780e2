package policytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/source"
)

// What is changed of objects, by the keys of members.
var (
	// expressions hold expressions in CEL.
	expressions = []string{"rule", "expression", "when", "valueExpression", "keyExpression", "cost"}
	// bounds are keywords of schemas that hold limits.
	bounds = []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties",
		"maxProperties"}
	// limits are the numbers of a RateLimitPolicy.
	limits = []string{"requests", "periodSeconds", "burst", "maxInFlight", "maxInFlightTotal", "queueLength", "percent"}
	// matchBlocks say which requests a policy or an exception matches.
	matchBlocks = []string{"match", "matchConstraints", "matchResources", "exemptions"}
	// lists are lists in such a block that must have an item, optional ones those that need not be there.
	lists    = []string{"operations", "resources", "apiGroups", "verbs", "resourceRules", "kinds", "values"}
	optional = []string{
		"excludeResourceRules", "matchConditions", "matchExpressions", "resourceNames", "namespaces",
		"excludedNamespaces",
		"usernames", "groups", "clientAddresses",
	}
	// names are keywords of schemas whose members are named by their authors.
	names     = []string{"properties", "patternProperties", "schemas"}
	selectors = []string{"namespaceSelector", "objectSelector", "labelSelector"}
	// opposites have for each operator of a selector the one that selects the others.
	opposites = map[string]string{"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
)

// A change is another value in an object.
type change struct {
	what string
	// value takes the place of the old one; nil leaves the member or the item out.
	value any
	// line and column are the place within a module; 0 is that of the member.
	line, column int
}

// mutantsOf returns the changes of a file.
func mutantsOf(f source.File) (all []Mutant) {
	switch f.Role {
	case source.Module:
		if isOfTests(f.Name) {
			return nil
		}
		for _, m := range rego.Mutants(rego.Module{File: f.Name, Source: f.Data}) {
			all = append(all, Mutant{File: f.Name, Line: m.Line, Column: m.Column, Field: m.Rule, Change: m.Change,
				make: func() []byte { return m.Source }})
		}
		return all
	case source.Objects:
	default:
		return nil
	}
	objects, _ := manifest.Read(f.Name, f.Data)
	add := func(i int, path string, c change) {
		at := objects[i].Where(path)
		if c.line > 0 {
			at.Line, at.Column = c.line, c.column
		}
		all = append(all, Mutant{
			File: f.Name, Line: at.Line, Column: at.Column, Field: path, Change: c.what,
			make: func() []byte { return changed(objects, i, path, c.value) },
		})
	}
	for i, o := range objects {
		if o.Kind == "PolicyException" {
			add(i, "", change{what: fmt.Sprintf("the PolicyException '%s' is left out", o.Name)})
		}
		var visit func(n document.Node, in surroundings)
		visit = func(n document.Node, in surroundings) {
			for m := n.First(); m.Valid(); m = m.Next() {
				if n.Kind() == document.Object {
					for _, c := range in.changesOf(o, m) {
						add(i, m.Path(), c)
					}
				} else if in.setsDefaults {
					add(i, m.Path(), change{what: fmt.Sprintf("`%s` is left out", shortened(m.Raw())), value: unset(m)})
				} else if in.losesItems && (n.Len() > 1 || in.isOptional) {
					add(i, m.Path(), change{what: fmt.Sprintf("`%s` is left out", shortened(m.Raw()))})
				}
				visit(m, in.below(n, m))
			}
		}
		visit(o.Document().Root(), surroundings{kind: o.Kind})
	}
	return all
}

// changed returns the file of objects as JSON, with another value at a path of one of them. Without a path the object
// is left out.
func changed(objects []*manifest.Object, at int, path string, value any) []byte {
	var out []byte
	for i, o := range objects {
		if i == at && path == "" {
			continue
		}
		if len(out) > 0 {
			out = append(out, "\n---\n"...)
		}
		if i != at {
			out = append(out, o.JSON...)
			continue
		}
		d := o.Document().Clone()
		if in, ok := find(d.Root(), path); ok {
			replace(d, in, value)
		}
		out = d.AppendTo(out)
		d.Release()
	}
	return out
}

// replace puts another value in the place of one. A list that would have no item left is left out itself.
func replace(d *document.Document, at document.Node, value any) {
	if value != nil {
		raw, _ := json.Marshal(value) // of the changes
		d.Replace(at, raw)
		return
	}
	if list := at.Parent(); list.Kind() == document.Array && list.Len() == 1 {
		at = list
	}
	d.Remove(at)
}

// unset returns an entry of a DefaultingPolicy without a value.
func unset(entry document.Node) json.RawMessage {
	d := entry.Clone()
	defer d.Release()
	if when, has := d.Root().Get("when"); has {
		d.Remove(when)
	}
	d.SetString(d.Root(), "when", "false")
	return d.AppendTo(nil)
}

// find finds the value at a path that a node of the same document gave.
func find(n document.Node, path string) (document.Node, bool) {
	for m := n.First(); m.Valid(); m = m.Next() {
		if m.Path() == path {
			return m, true
		}
		if strings.HasPrefix(path, m.Path()) {
			if found, ok := find(m, path); ok {
				return found, true
			}
		}
	}
	return document.Node{}, false
}

// surroundings say where in an object a value is.
type surroundings struct {
	kind string
	// isMatch says that it is in a block that says what is matched, isSchema that the next members are keywords.
	isMatch, isSchema bool
	// losesItems says that the items of the list are left out one by one, isOptional that the last one may be as well.
	losesItems, isOptional bool
	// setsDefaults says that the items set defaults.
	setsDefaults bool
}

// below returns the surroundings of what is in m, a member or an item of n.
func (c surroundings) below(n, m document.Node) surroundings {
	in := surroundings{kind: c.kind, isMatch: c.isMatch, isSchema: c.isSchema}
	if n.Kind() != document.Object {
		return in
	}
	key := m.Key()
	in.isMatch = c.isMatch || slices.Contains(matchBlocks, key)
	switch {
	case slices.Contains(names, key), key == "default" && c.isSchema:
		in.isSchema = false
	case slices.Contains(names, n.Key()), key == "schema", key == "openAPIV3Schema":
		in.isSchema = true
	}
	if m.Kind() == document.Array {
		in.isOptional = slices.Contains(optional, key)
		in.losesItems = in.isOptional || key == "policies" && c.kind == "PolicyException" || c.isMatch &&
			slices.Contains(lists, key)
		in.setsDefaults = key == "defaults" && c.kind == "DefaultingPolicy"
	}
	return in
}

// changesOf returns what is changed of a member.
func (c surroundings) changesOf(o *manifest.Object, n document.Node) (all []change) {
	key := n.Key()
	switch n.Kind() {
	case document.String:
		text := n.Str()
		switch {
		case slices.Contains(expressions, key):
			return changesIn(text)
		case key == "rego":
			return changesInModule(o, n)
		case key == "operator" && opposites[text] != "":
			return []change{{what: fmt.Sprintf("`%s` to `%s`", text, opposites[text]), value: opposites[text]}}
		case key == "enforcementAction" && text == "deny":
			return []change{{what: "`deny` to `dryrun`", value: "dryrun"}}
		}
	case document.Number:
		if by := c.moved(key, n); by != nil {
			return []change{*by}
		}
	case document.Array:
		switch {
		case key == "operations" && c.isMatch && !strings.Contains(string(n.Raw()), `"*"`):
			return []change{{what: fmt.Sprintf("`%s` to `[\"*\"]`", shortened(n.Raw())), value: []string{"*"}}}
		case key == "validationActions" && strings.Contains(string(n.Raw()), `"Deny"`):
			return []change{{what: fmt.Sprintf("`%s` to `[\"Audit\"]`", shortened(n.Raw())), value: []string{"Audit"}}}
		}
	}
	if key == "default" && c.isSchema || slices.Contains(selectors, key) && n.Len() > 0 {
		return []change{{what: fmt.Sprintf("`%s` is left out", shortened(n.Raw()))}}
	}
	return nil
}

// moved moves a limit by one, so that it lets more pass; nil if the number is none.
func (c surroundings) moved(key string, n document.Node) *change {
	if !slices.Contains(bounds, key) && (c.kind != "RateLimitPolicy" || !slices.Contains(limits, key)) {
		return nil
	}
	number, err := strconv.ParseFloat(string(n.Raw()), 64)
	if err != nil {
		return nil
	}
	by := 1.0
	if strings.HasPrefix(key, "min") {
		by = -1
	}
	return &change{what: fmt.Sprintf("`%v` to `%v`", number, number+by), value: number + by}
}

// changesInModule changes a module in Rego that is a text of an object.
func changesInModule(o *manifest.Object, n document.Node) (all []change) {
	for _, m := range rego.Mutants(rego.Module{File: o.File, Line: o.Line(n.Path()), Source: []byte(n.Str())}) {
		all = append(all, change{what: m.Rule + ": " + m.Change, value: string(m.Source), line: m.Line})
	}
	return all
}

// shortened returns a value as it is shown to people.
func shortened(raw []byte) string {
	const most = 60
	text := []rune(string(raw))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
