package builtin

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkReferences returns the error about a schema that leads out of itself, or is a part of
// itself. No file is opened and no host asked for any reference.
func checkReferences(schemas int) func(operands) error {
	return func(o operands) error {
		if s := schemaOf(o.of[schemas], max(o.left, 0)); s != nil {
			return s.err
		}
		return nil
	}
}

// withoutName returns a schema without its own name, so that its references need none.
func withoutName(t *ast.Term) *ast.Term {
	s := schemaOf(t, deepest)
	root, ok := any(nil), false
	if s == nil || s.err != nil || len(s.refs) == 0 || s.id == "" {
		return t
	}
	if root, ok = s.named(s.root, true); !ok {
		return t
	}
	v, err := ast.InterfaceToValue(root)
	if err != nil {
		return t
	}
	if _, isText := t.Value.(ast.String); isText {
		text, err := json.Marshal(root)
		if err != nil {
			return t
		}
		v = ast.String(text)
	}
	return ast.NewTerm(v)
}

// named returns a value without the schema's name in it.
func (s *schema) named(v any, isRoot bool) (any, bool) {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i], _ = s.named(v[i], false)
		}
		return list, true
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key], _ = s.named(item, false)
		}
		if ref, ok := v["$ref"].(string); ok {
			m["$ref"] = s.local(ref)
		}
		if isRoot {
			_, key := idOf(v)
			delete(m, key)
		}
		return m, true
	}
	return v, false
}

// decodedJSON is a document or a schema as Go's values, which are made a few times.
func decodedJSON(o operands) (n need) {
	n.memory = 64 << 10
	for i, t := range o.of {
		if text, ok := t.Value.(ast.String); ok {
			s := shapeOf(string(text))
			made := s.need()
			n.memory, n.steps = add(n.memory, add(multiply(2, made.memory), 12*s.bytes)), add(n.steps, made.steps)
			continue
		}
		n.memory = add(n.memory, add(multiply(24, o.deep(i)), 4*frameBytes*int64(depthOf(t.Value, maxParsed))))
	}
	return n
}

// compiled is a schema that is taken apart.
func compiled(o operands) need {
	if s := schemaOf(o.of[0], o.left); s != nil {
		return s.need()
	}
	return need{}
}

func (s *schema) need() need {
	return need{memory: multiply(2, s.weight), steps: frameBytes * int64(min(len(s.refs), maxParsed)) / 4}
}

// validated is a document that is held against a schema.
func validated(o operands) need {
	s := schemaOf(o.of[1], o.left)
	if s == nil || s.err != nil {
		return need{}
	}
	n := s.need()
	if len(s.parts) == 0 || add(n.memory, n.steps) > o.left {
		return n
	}
	document, ok := documentFor(o.of[0])
	if !ok {
		return n
	}
	v := validation{left: o.left - n.memory - n.steps}
	v.value(map[*subschema]int64{s.parts[0]: 1}, document, 0)
	n.memory, n.steps = add(n.memory, v.memory), add(n.steps, v.steps)
	return n
}

func documentFor(t *ast.Term) (v any, ok bool) {
	if text, is := t.Value.(ast.String); is {
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		return v, d.Decode(&v) == nil
	}
	v, err := ast.JSON(t.Value)
	return v, err == nil
}

// A validation goes through a document as OPA's library does, and counts what that takes: how often
// each part of the schema is asked about each value, and what it can say.
type validation struct{ left, memory, steps int64 }

// What the library takes.
const (
	askSteps     = 128      // to ask a part about a value
	failureBytes = 4 << 10  // to say what is wrong
	compileSteps = 16 << 10 // to compile a pattern of properties, which it does for each name
)

func (v *validation) isOver() bool { return add(v.memory, v.steps) > v.left }

// value counts what it takes to ask parts, each so many times, about a value, whose place in the
// document is so long to write.
func (v *validation) value(asked map[*subschema]int64, value any, path int64) {
	all := here(asked)
	children := map[string]map[*subschema]int64{}
	for _, p := range slices.SortedFunc(maps.Keys(all), func(a, b *subschema) int { return b.place - a.place }) {
		times := all[p]
		v.steps = add(v.steps, multiply(askSteps, times))
		v.memory = add(v.memory, multiply(times, failureBytes+4*path))
		if v.isOver() {
			return
		}
		v.own(p, times, value, path)
		switch value := value.(type) {
		case map[string]any:
			v.object(p, times, value, path, children)
		case []any:
			v.array(p, times, value, path, children)
		}
		if v.isOver() {
			return
		}
	}
	for name, asked := range children {
		if v.isOver() {
			return
		}
		v.value(asked, child(value, name), path+1+int64(len(name)))
	}
}

// here returns the parts with all that hold for the same value, and how often each is asked.
func here(asked map[*subschema]int64) map[*subschema]int64 {
	all, queue := map[*subschema]int64{}, slices.Collect(maps.Keys(asked))
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if _, ok := all[p]; ok {
			continue
		}
		all[p] = asked[p]
		queue = append(queue, p.here...)
	}
	for _, p := range slices.SortedFunc(maps.Keys(all), func(a, b *subschema) int { return b.place - a.place }) {
		for _, other := range p.here {
			all[other] = add(all[other], all[p])
		}
	}
	return all
}

func child(value any, name string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil {
			return value[i]
		}
	}
	return nil
}

// own counts what a part says of a value itself.
func (v *validation) own(p *subschema, times int64, value any, path int64) {
	if p.allowed > 0 {
		v.memory = add(v.memory, multiply(times, multiply(4, add(p.allowed, jsonSize(value)))))
	}
	switch value := value.(type) {
	case string:
		n := int64(len(value))
		v.steps = add(v.steps, multiply(times, add(n/4, multiply(p.pattern, n)/4)))
		if p.format == "regex" {
			s := schema{left: v.left}
			cost, _ := s.program(value)
			v.memory = add(v.memory, multiply(times, cost))
		}
		v.memory = add(v.memory, multiply(times, multiply(8, n)))
	case json.Number:
		v.steps = add(v.steps, multiply(times, numberSteps(value)))
	case []any:
		if p.isUnique {
			each := add(multiply(8, jsonSize(value)), multiply(int64(len(value)), failureBytes+4*path))
			v.memory = add(v.memory, multiply(times, each))
		}
	case map[string]any:
		errors := p.required + p.dependent
		if p.isClosed || p.names != nil {
			errors += int64(len(value))
		}
		keys := int64(0)
		for key := range value {
			keys += int64(len(key))
		}
		v.memory = add(v.memory, multiply(times, add(multiply(errors, failureBytes+4*path), 4*keys)))
		looks := multiply(int64(len(value)), add(int64(len(p.properties))/8, p.patternKeys))
		v.steps = add(v.steps, multiply(times, add(looks, multiply(keys, int64(len(p.patterns))))))
	}
}

// numberSteps is the cost of a fraction of whole numbers that is made of a number.
func numberSteps(n json.Number) int64 {
	if strings.ContainsAny(string(n), "eE") {
		return compileSteps + square(int64(len(n)), 8)
	}
	return 16 + square(int64(len(n)), 8)
}

func ask(children map[string]map[*subschema]int64, name string, p *subschema, times int64) {
	if p == nil {
		return
	}
	of := children[name]
	if of == nil {
		of = map[*subschema]int64{}
		children[name] = of
	}
	of[p] = add(of[p], times)
}

func (v *validation) object(p *subschema, times int64, value map[string]any, path int64,
	children map[string]map[*subschema]int64) {
	if len(p.properties) == 0 && len(p.patterns) == 0 && p.others == nil && p.names == nil {
		return
	}
	for name := range value {
		if v.memory = add(v.memory, parsedBytes); v.isOver() {
			return
		}
		known, ok := p.properties[name]
		ask(children, name, known, times)
		if !ok {
			ask(children, name, p.others, times)
		}
		for _, pattern := range p.patterns {
			ask(children, name, pattern, times)
		}
		if p.names != nil {
			v.value(map[*subschema]int64{p.names: times}, name, path)
		}
	}
}

func (v *validation) array(p *subschema, times int64, value []any, _ int64, children map[string]map[*subschema]int64) {
	if len(p.items) == 0 && p.more == nil && p.contains == nil {
		return
	}
	for i := range value {
		if v.memory = add(v.memory, parsedBytes); v.isOver() {
			return
		}
		name := strconv.Itoa(i)
		switch {
		case !p.isList && len(p.items) > 0:
			ask(children, name, p.items[0], times)
		case i < len(p.items):
			ask(children, name, p.items[i], times)
		default:
			ask(children, name, p.more, times)
		}
		ask(children, name, p.contains, times)
	}
}

// jsonSize is roughly how long a value is as JSON.
func jsonSize(v any) int64 {
	size := int64(4)
	switch v := v.(type) {
	case string:
		size += int64(len(v))
	case json.Number:
		size += int64(len(v))
	case []any:
		for _, item := range v {
			size += 1 + jsonSize(item)
		}
	case map[string]any:
		for key, item := range v {
			size += 4 + int64(len(key)) + jsonSize(item)
		}
	}
	return size
}
