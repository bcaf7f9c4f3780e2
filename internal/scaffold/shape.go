package scaffold

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

const (
	// maxMembers bounds how many members of an object a schema names, maxShapes how many schemas there
	// are in all. Members that it does not name pass.
	maxMembers, maxShapes = 200, 20000
)

// A shape is the union of the values that were seen in one place. Its schema allows each of them.
type shape struct {
	kinds kind // what they were
	// objects is how many of them were objects, and parts how many of these were members of an object.
	// Neither counts what patches have. members are the members that the objects have under fixed names,
	// and rest the ones whose names are identifiers, as in a map.
	objects, parts int
	members        map[string]*shape
	rest           *shape
	// isChanged says that a patch has a part of it, which may be all that there is.
	isChanged bool
	// isOpen says that objects have members that were not looked at.
	isOpen bool
	// isUnread says that there was a value which could not be read.
	isUnread bool
	items    *shape // of lists
}

// A kind is a set of types of JSON Schema.
type kind uint8

const (
	nulls kind = 1 << iota
	booleans
	integers
	fractions
	texts
	lists
	objects
)

// kindNames has the names of the types, in the order in which a schema lists them.
var kindNames = []struct {
	kind kind
	name string
}{{objects, "object"}, {lists, "array"}, {texts, "string"}, {integers, "integer"}, {fractions, "number"},
	{booleans, "boolean"}, {nulls, "null"}}

// A surveyor adds values to shapes, as long as there is room for more of them.
type surveyor struct {
	shapes int
	// isPatch says that the values are of patches: what they lack may be there.
	isPatch bool
}

// shape returns a new shape; nil if there are too many.
func (s *surveyor) shape() *shape {
	if s.shapes == maxShapes {
		return nil
	}
	s.shapes++
	return &shape{}
}

// add adds a value.
func (s *surveyor) add(to *shape, n document.Node) {
	switch n.Kind() {
	case document.Null:
		to.kinds |= nulls
	case document.Bool:
		to.kinds |= booleans
	case document.Number:
		if n.IsInteger() {
			to.kinds |= integers
		} else {
			to.kinds |= fractions
		}
	case document.String:
		to.kinds |= texts
	case document.Array:
		to.kinds |= lists
		for item := n.First(); item.Valid(); item = item.Next() {
			if to.items == nil {
				if to.items = s.shape(); to.items == nil {
					return
				}
			}
			s.add(to.items, item)
		}
	case document.Object:
		to.kinds |= objects
		if !s.isPatch {
			to.objects++
		}
		for m := n.First(); m.Valid(); m = m.Next() {
			at := s.member(to, m.Key())
			switch {
			case at == nil:
				to.isOpen = true
			case !s.isPatch:
				at.parts++
				s.add(at, m)
			case m.Kind() != document.Null: // null takes a member away
				at.isChanged = true
				s.add(at, m)
			}
		}
	}
}

// patch adds what a patch changes: a merge patch the values that it has, and a JSON patch some values of the members
// that its paths begin with.
func (s *surveyor) patch(to *shape, n document.Node) {
	s.isPatch = true
	defer func() { s.isPatch = false }()
	if n.Kind() == document.Object {
		s.add(to, n)
	}
	for step := first(n, document.Array); step.Valid(); step = step.Next() {
		path, _ := step.Get("path")
		if path.Kind() != document.String {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(path.Str(), "/"), "/")
		if at := s.member(to, strings.NewReplacer("~1", "/", "~0", "~").Replace(name)); at != nil {
			at.isUnread = true
		}
	}
}

// member returns the shape of the members with a name; nil if the schema shall not name them.
func (s *surveyor) member(of *shape, name string) *shape {
	if at := of.members[name]; at != nil {
		return at
	}
	if isIdentifier(name) {
		if of.rest == nil {
			of.rest = s.shape()
		}
		return of.rest
	}
	if len(of.members) == maxMembers {
		return nil
	}
	made := s.shape()
	if made != nil {
		if of.members == nil {
			of.members = map[string]*shape{}
		}
		of.members[strings.Clone(name)] = made
	}
	return made
}

// schema returns the schema of the values. What all objects have is required, unless the values are
// patches, which have what they change.
func (s *shape) schema(isPatch bool) map[string]any {
	made := map[string]any{}
	kinds := s.kinds
	if s.isUnread || kinds == nulls { // null alone does not say what else there may be
		return made
	}
	if kinds&fractions != 0 {
		kinds &^= integers
	}
	var types []any
	for _, k := range kindNames {
		if kinds&k.kind != 0 {
			types = append(types, k.name)
		}
	}
	switch len(types) {
	case 0:
		return made
	case 1:
		made["type"] = types[0]
	default:
		made["type"] = types
	}
	if s.items != nil {
		made["items"] = s.items.schema(isPatch)
	}
	properties, required := map[string]any{}, []string{}
	for name, m := range s.members {
		properties[name] = m.schema(isPatch)
		if m.parts == s.objects && s.objects > 0 && !s.isChanged && !isPatch {
			required = append(required, name)
		}
	}
	if len(properties) > 0 {
		made["properties"] = properties
	}
	if slices.Sort(required); len(required) > 0 {
		made["required"] = required
	}
	if s.rest != nil && !s.isOpen && len(properties) == 0 { // a map
		made["additionalProperties"] = s.rest.schema(isPatch)
	}
	return made
}

// first returns the first part of a node of a kind; an invalid one if the node is of another.
func first(n document.Node, of document.Kind) document.Node {
	if n.Kind() != of {
		return document.Node{}
	}
	return n.First()
}

// isIdentifier reports whether a text is an identifier and no word, by its form: a number, a UUID or another text of
// digits and letters, or a word with a number behind a hyphen or an underscore.
func isIdentifier(s string) bool {
	digits, hexDigits, letters, others := 0, 0, 0, 0
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			digits++
			hexDigits++
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			letters++
			hexDigits++
		case c >= 'g' && c <= 'z' || c >= 'G' && c <= 'Z':
			letters++
		case c == '-' || c == '_':
		default:
			others++
		}
	}
	if others > 0 {
		return strings.Contains(s, "@")
	}
	last := s[strings.LastIndexAny(s, "-_")+1:]
	isNumber := last != "" && strings.Trim(last, "0123456789") == ""
	switch {
	case digits == 0:
		return false
	case letters == 0, isNumber && len(last) < len(s):
		return true
	case hexDigits == digits+letters && hexDigits >= 8:
		return true
	}
	return digits+letters >= 16 || len(last) >= 10 && strings.ContainsAny(last, "0123456789")
}
