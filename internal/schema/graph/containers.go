package graph

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// objectKeyword compiles the keywords of objects.
func (f *filler) objectKeyword(name string, m document.Node) {
	switch name {
	case "additionalProperties":
		if f.isSchema(m) {
			f.object().additional = f.sub(m)
		}
		return
	case "propertyNames":
		if f.isSchema(m) {
			f.object().propertyIs = f.sub(m)
		}
		return
	case "unevaluatedProperties":
		if f.isSchema(m) {
			f.object().unevaluated = f.sub(m)
		}
		return
	case "minProperties":
		f.object().size.Least = f.count(m)
		return
	case "maxProperties":
		f.object().size.Most = f.count(m)
		return
	case "required":
		for _, name := range f.names(m) {
			f.property(name).isRequired = true
		}
		return
	}
	if m.Kind() != document.Object {
		f.refuse(m, "must be an object")
		return
	}
	for member := m.First(); member.Valid(); member = member.Next() {
		key := strings.Clone(member.Key())
		switch name {
		case "properties":
			if f.isSchema(member) {
				f.property(key).schema = f.sub(member)
			}
		case "patternProperties":
			if !f.isSchema(member) {
				continue
			}
			if p := f.expression(key, member); p != nil {
				f.object().patterns = append(f.object().patterns, patternRule{p.Match, f.sub(member)})
			} else {
				f.object().patterns = append(f.object().patterns,
					patternRule{func(string) bool { return false }, anything})
				f.isOpen = true
			}
		case "dependentRequired":
			d := dependent{name: document.NewName(key)}
			for _, other := range f.names(member) {
				d.required = append(d.required, document.NewName(other))
			}
			f.object().dependents = append(f.object().dependents, d)
		case "dependentSchemas":
			if f.isSchema(member) {
				f.object().dependents = append(f.object().dependents,
					dependent{name: document.NewName(key), schema: f.sub(member)})
			}
		}
	}
}

// names reads a list of names of members.
func (f *filler) names(m document.Node) (names []string) {
	if m.Kind() != document.Array {
		f.refuse(m, "must be a list of names of properties")
		return nil
	}
	for item := m.First(); item.Valid(); item = item.Next() {
		if item.Kind() != document.String {
			f.refuse(item, "must be the name of a property")
			continue
		}
		names = append(names, strings.Clone(item.Str()))
	}
	return names
}

// property returns what is said of a member, to be completed.
func (f *filler) property(name string) *property {
	if i, found := f.named[name]; found {
		return &f.object().properties[i]
	}
	if f.named == nil {
		f.named = map[string]int{}
	}
	o := f.object()
	f.named[name] = len(o.properties)
	o.properties = append(o.properties, property{name: document.NewName(name)})
	return &o.properties[len(o.properties)-1]
}

// link completes an object.
func (f *filler) link(o *objectRules) {
	if len(o.properties) > document.MaxNames {
		f.refuse(f.at, "must have at most %d properties", document.MaxNames)
		o.properties = o.properties[:document.MaxNames]
	}
	if f.isOpen { // members are not to be refused for an expression that is not enforced
		o.additional, o.unevaluated = nil, nil
	}
	o.link()
}

// listKeyword compiles the keywords of lists.
func (f *filler) listKeyword(name string, m document.Node) {
	switch name {
	case "items":
		if m.Kind() == document.Array {
			f.refuse(m, "must be one schema: a list of schemas is 'prefixItems' in JSON Schema 2020-12")
			return
		}
		if f.isSchema(m) {
			f.list().items = f.sub(m)
		}
	case "prefixItems":
		if m.Kind() != document.Array {
			f.refuse(m, "must be a list of schemas")
			return
		}
		for item := m.First(); item.Valid(); item = item.Next() {
			if !f.isSchema(item) {
				return
			}
			f.list().prefix = append(f.list().prefix, f.sub(item))
		}
	case "contains":
		if f.isSchema(m) {
			f.list().contains, f.hasContains = f.sub(m), true
		}
	case "unevaluatedItems":
		if f.isSchema(m) {
			f.list().unevaluated = f.sub(m)
		}
	case "minContains":
		f.list().minimum = max(int(f.count(m)), 0)
	case "maxContains":
		f.list().maximum = int(f.count(m))
	case "minItems":
		f.list().size.Least = f.count(m)
	case "maxItems":
		f.list().size.Most = f.count(m)
	case "uniqueItems":
		f.list().isUnique = f.truth(m, true)
	}
}
