package kubernetes

import (
	"fmt"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
)

// file has what types.txt says. Its lines are
//
//	group GROUP PREFIX        the types of an API group begin with the prefix
//	NAME any                  a type that is any scalar
//	NAME object [atomic]      a type whose fields follow, each in a line that begins with a tab:
//	  FIELD TYPE [default=JSON] [merge[=KEY]] [replace]
//
// and a TYPE is number, string, boolean, any, opaque, deduced, the NAME of a type (after '+' or '!' as an object that
// is merged member by member or as a whole, whatever the type says), []TYPE for a list that is one value, [*]TYPE for a
// set, [KEY,...]TYPE for a list whose items are told apart by keys, {}TYPE for a map and {!}TYPE for a map that is one
// value. A field named * stands for all that are not named.
type file struct {
	groups map[string]string // prefixes by API groups
	types  map[string]*merge.Type
}

func read(text string) (*file, error) {
	r := reader{
		file:    file{groups: map[string]string{}, types: map[string]*merge.Type{}},
		scalars: map[defaulted]document.Node{},
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	// Types refer to each other in any order, so that all are there before the first is filled.
	for _, line := range lines {
		if name, _, ok := strings.Cut(line, " "); ok && line[0] != '\t' && name != "group" {
			r.types[name] = &merge.Type{}
		}
	}
	for i, line := range lines {
		if err := r.line(strings.Split(line, " ")); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	r.finish()
	return &r.file, nil
}

// reader makes types of lines.
type reader struct {
	file
	object  *merge.Object // whose fields follow
	fields  []merge.Field
	keyed   []keyedList
	others  []override
	scalars map[defaulted]document.Node
}

// keyedList is a list whose keys have defaults that may be found only later.
type keyedList struct {
	keys []merge.Key
	item *merge.Type
}

// override is a type that is another one, but for what change does.
type override struct {
	t, of  *merge.Type
	change func(*merge.Object)
}

// defaulted is a field with a default.
type defaulted struct {
	object *merge.Object
	field  string
}

func (r *reader) line(words []string) error {
	if name, isField := strings.CutPrefix(words[0], "\t"); isField {
		return r.field(name, words[1:])
	}
	r.finishObject()
	switch {
	case words[0] == "group" && len(words) == 3:
		r.groups[strings.Trim(words[1], `"`)] = words[2]
	case len(words) == 2 && words[1] == "any":
		r.types[words[0]].Scalar = merge.Any
	case len(words) >= 2 && words[1] == "object":
		// A newer API server than the one that published the types may know more fields.
		r.object = &merge.Object{Atomic: len(words) == 3 && words[2] == "atomic", Grows: true}
		r.types[words[0]].Object = r.object
	default:
		return fmt.Errorf("must be a group or a type: %q", words)
	}
	return nil
}

func (r *reader) field(name string, words []string) error {
	if r.object == nil || len(words) == 0 {
		return fmt.Errorf("must be a field of a type: %q", name)
	}
	t, err := r.typeOf(words[0])
	if err != nil {
		return err
	}
	for _, word := range words[1:] {
		option, value, _ := strings.Cut(word, "=")
		switch option {
		case "default":
			d, err := document.Parse([]byte(value), document.Limits{})
			if err != nil {
				return err
			}
			r.scalars[defaulted{r.object, name}] = d.Root()
		case "merge":
			t.List.Merged = true
			if value != "" {
				t.List.MergeKeys = []merge.Key{{Name: document.NewName(value)}}
			}
		case "replace":
			t = r.override(t, func(o *merge.Object) { o.Replaced = true })
		default:
			return fmt.Errorf("must be an option of a field: %q", word)
		}
	}
	if name == "*" {
		r.object.Rest = t
	} else {
		r.fields = append(r.fields, merge.Field{Name: name, Type: t})
	}
	return nil
}

// typeOf reads a TYPE.
func (r *reader) typeOf(text string) (*merge.Type, error) {
	switch text {
	case "number":
		return &merge.Type{Scalar: merge.Numeric}, nil
	case "string":
		return &merge.Type{Scalar: merge.Text}, nil
	case "boolean":
		return &merge.Type{Scalar: merge.Boolean}, nil
	case "any":
		return &merge.Type{Scalar: merge.Any}, nil
	case "opaque":
		return merge.Opaque(), nil
	case "deduced":
		return merge.Deduced(), nil
	}
	switch text[0] {
	case '[':
		return r.listOf(text[1:])
	case '{':
		atomic := strings.HasPrefix(text, "{!}")
		rest, err := r.typeOf(text[strings.IndexByte(text, '}')+1:])
		return &merge.Type{Object: &merge.Object{Rest: rest, Atomic: atomic}}, err
	case '+', '!':
		named, err := r.typeOf(text[1:])
		if err != nil {
			return nil, err
		}
		return r.override(named, func(o *merge.Object) { o.Atomic = text[0] == '!' }), nil
	}
	t, ok := r.types[text]
	if !ok {
		return nil, fmt.Errorf("must be the name of a type: %q", text)
	}
	return t, nil
}

func (r *reader) override(of *merge.Type, change func(*merge.Object)) *merge.Type {
	t := &merge.Type{}
	r.others = append(r.others, override{t, of, change})
	return t
}

// listOf reads what follows the '[' of a list.
func (r *reader) listOf(text string) (*merge.Type, error) {
	keys, itemText, ok := strings.Cut(text, "]")
	if !ok {
		return nil, fmt.Errorf("must have a ']': %q", text)
	}
	items, err := r.typeOf(itemText)
	if err != nil {
		return nil, err
	}
	l := &merge.List{Items: items}
	switch keys {
	case "":
	case "*":
		l.Relation = merge.Associative
	default:
		l.Relation = merge.Associative
		for key := range strings.SplitSeq(keys, ",") {
			l.Keys = append(l.Keys, merge.Key{Name: document.NewName(key)})
		}
		r.keyed = append(r.keyed, keyedList{l.Keys, items})
	}
	return &merge.Type{List: l}, nil
}

func (r *reader) finishObject() {
	if r.object != nil {
		r.object.SetFields(r.fields)
	}
	r.object, r.fields = nil, r.fields[:0]
}

// finish fills in what is known only when all types are.
func (r *reader) finish() {
	r.finishObject()
	for _, o := range r.others {
		object := *o.of.Object
		o.change(&object)
		o.t.Object = &object
	}
	for _, l := range r.keyed {
		for i := range l.keys {
			l.keys[i].Default = r.scalars[defaulted{l.item.Object, l.keys[i].Name.String()}]
		}
	}
}
