package explain

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/status"
)

// at follows a place through the object. path is right also if nothing stands there.
func (x *explainer) at(p operandLocation) (n document.Node, path string, ok bool) {
	var b []byte
	switch {
	case p.base == baseObject:
		n = x.objectSlot().Node
	case p.base == baseChosen:
		if n = x.chosen(p); !n.Valid() {
			return n, "", false
		}
		b = []byte(x.pathOf(n))
	case !p.ofObject() || p.level >= len(x.items):
		return n, "", false
	default:
		b, n = []byte(x.items[p.level].path), x.items[p.level].node
		if p.base == baseKey || p.base == baseItem && x.items[p.level].keyed {
			return document.Node{}, string(b), true
		}
	}
	for _, s := range p.steps {
		switch {
		case !s.item:
			n, _ = n.Get(s.name)
		case n.Kind() == document.Array:
			n, _ = n.At(s.index)
		default:
			n = document.Node{}
		}
	}
	return n, string(appendSteps(b, p.steps)), true
}

// chosen is what of the object the variable of a place stands for; an invalid node if it is no object or list of it.
func (x *explainer) chosen(p operandLocation) document.Node {
	v, err := p.chosen.program.EvalValue(x.frame, x.vars)
	if err != nil {
		return document.Node{}
	}
	if n := nodeOf(v); x.inObject(n) {
		return n
	}
	return document.Node{}
}

// failure is the failure of a clause that is no composition.
func (x *explainer) failure(c *clause) *field.Error {
	a := c.atom
	err := &field.Error{Type: field.ErrorTypeInvalid, BadValue: field.OmitValueType{}}
	var n document.Node
	found := false
	if a.subject.kind == operandPlace {
		n, err.Field, found = x.at(a.subject.place)
	}
	if !found {
		err.Field = x.nearest(a.subject)
		n = document.Node{}
	}
	if a.kind == atomOther {
		return err
	}
	err.Detail = a.must
	switch a.kind {
	case atomSentence, atomAnyPresence:
		if a.kind == atomAnyPresence {
			err.Type, err.BadValue = field.ErrorTypeRequired, ""
		}
	case atomPresence:
		err.Type, err.BadValue, err.Detail = field.ErrorTypeRequired, "", ""
	case atomAbsence:
		err.Type, err.BadValue = field.ErrorTypeForbidden, ""
	default:
		if !found {
			if a.subject.text != "" {
				err.Detail = a.subject.text + " " + a.must
			}
			break
		}
		if p := a.subject.place; p.base == baseKey || p.base == baseItem && x.items[p.level].keyed {
			if item := x.items[p.level]; item.node.Valid() {
				err.BadValue = clip(item.key)
			}
			break
		}
		if !n.Valid() && a.kind != atomImmutable {
			err.Type, err.BadValue = field.ErrorTypeRequired, ""
			break
		}
		err.BadValue = shown(n)
		x.refine(a, n, err)
	}
	x.condition(a, err)
	return err
}

// nearest is the nearest path for an operand that has no single place.
func (x *explainer) nearest(o operand) string {
	if o.located {
		if _, path, ok := x.at(o.about); ok {
			return path
		}
	}
	if x.each != nil && len(x.items) > 0 {
		return x.items[len(x.items)-1].path
	}
	return pathText(x.path)
}

// refine gives the failure the type and the words that go with what the value is.
func (x *explainer) refine(a *atom, n document.Node, err *field.Error) {
	switch a.kind {
	case atomSupported:
		supported := make([]string, len(a.supported))
		for i, v := range a.supported {
			supported[i] = strings.Trim(literalText(v), "'")
		}
		*err = *status.Enum(err.Field, err.BadValue, supported)
	case atomUnique:
		err.Type, err.Detail = field.ErrorTypeDuplicate, ""
		if len(a.keys) > 1 {
			err.BadValue = keysOf(n, a.keys)
		}
	case atomSize:
		x.sized(a, n, err)
	case atomMember:
		name, isText := a.literal.(types.String)
		if n.Kind() != document.Object || !isText {
			break
		}
		err.Field = string(appendKey([]byte(err.Field), string(name)))
		err.Type, err.BadValue, err.Detail = field.ErrorTypeRequired, "", ""
		if a.absent {
			err.Type, err.Detail = field.ErrorTypeForbidden, "may not be set"
		}
	}
}

// sized words a bound on a size as the schemas do.
func (x *explainer) sized(a *atom, n document.Node, err *field.Error) {
	size := int64(n.Len())
	if n.Kind() == document.String {
		size = int64(utf8.RuneCountInString(n.Str()))
	}
	var as *field.Error
	switch kind := n.Kind(); {
	case a.size < 1:
		return // "must be empty"
	case kind == document.String && a.op == operators.LessEquals:
		as = status.MaxLength(err.Field, a.size)
	case kind == document.String && a.op == operators.GreaterEquals:
		as = status.MinLength(err.Field, clip(n.Str()), a.size)
		as.Type = field.ErrorTypeInvalid // as the schemas have it
	case kind == document.Array && a.op == operators.LessEquals:
		as = status.MaxItems(err.Field, size, a.size)
	case kind == document.Array && a.op == operators.GreaterEquals:
		as = status.MinItems(err.Field, size, a.size)
	case kind == document.Object && a.op == operators.LessEquals:
		as = status.MaxProperties(err.Field, size, a.size)
	case kind == document.Object && a.op == operators.GreaterEquals:
		as = status.MinProperties(err.Field, size, a.size)
	default:
		return
	}
	*err = *as
}

// condition adds under which conditions the demand is made.
func (x *explainer) condition(a *atom, err *field.Error) {
	var texts []string
	for _, s := range x.when {
		if x.implied(s, a.subject) || s.past && a.past {
			continue // it goes without saying
		}
		text := x.stated(s).String()
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return
	}
	demand := err.Detail
	switch {
	case err.Type == field.ErrorTypeRequired && demand == "":
		demand = "must be set"
	case err.Type == field.ErrorTypeNotSupported, err.Type == field.ErrorTypeDuplicate:
		return
	}
	err.Detail = demand + " when " + enumerate(texts, "and")
}

// stated is a statement that names the place that its subject stands at in this object.
func (x *explainer) stated(s statement) statement {
	if s.text == "" && s.subject.place.base == baseChosen {
		if _, path, ok := x.at(s.subject.place); ok && path != "" {
			s.subject.text = "`" + path + "`"
		}
	}
	return s
}

// implied reports whether a statement goes without saying in a demand on the subject, or on a list
// around it.
func (x *explainer) implied(s statement, subject operand) bool {
	for !s.implied(subject) {
		if p := subject.place; subject.kind != operandPlace || p.level == 0 || p.level >= len(x.over) {
			return false
		}
		subject.place = x.over[subject.place.level]
	}
	return true
}

// keysOf shows the members that identify items.
func keysOf(n document.Node, keys [][]step) any {
	b := []byte{'{'}
	for _, steps := range keys {
		v := n
		for _, s := range steps {
			v, _ = v.Get(s.name)
		}
		if !v.Valid() {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		name, err := json.Marshal(pathText(steps))
		if err != nil || v.Kind() >= document.Object || len(v.Raw()) > quote.MaxValue {
			return field.OmitValueType{}
		}
		b = append(append(append(b, name...), ':'), v.Raw()...)
	}
	return json.RawMessage(append(b, '}'))
}

// shown is a value as a field error keeps it: a copy, shortened, and of numbers the spelling. Objects and lists are
// left out.
func shown(n document.Node) any {
	switch n.Kind() {
	case document.Bool:
		return n.Bool()
	case document.String:
		return clip(n.Str())
	case document.Null:
		return json.RawMessage("null")
	case document.Number:
		if i, ok := n.Int64(); ok && n.IsInteger() {
			return i
		}
		if raw := n.Raw(); len(raw) <= quote.MaxValue {
			return json.RawMessage(slices.Clone(raw))
		}
		if f, ok := n.Float64(); ok && !math.IsInf(f, 0) {
			return f
		}
	}
	return field.OmitValueType{}
}

// clip copies a string of a document, shortened to what a message may repeat.
func clip(s string) string { return strings.Clone(quote.Clip(s, quote.MaxValue)) }
