package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A schema is a JSON Schema as OPA's library takes it apart, to know what that will take: each
// reference has its part of the schema once more.
type schema struct {
	root   any
	id     string // of the root, which references may name
	parts  []*subschema
	refs   map[string]*subschema
	ids    map[string]any // the parts with names of their own, such as "#name"
	left   int64
	weight int64 // of all parts, in bytes
	places int
	err    error
}

// A subschema is a schema within a schema.
type subschema struct {
	here       []*subschema // also hold for the same value
	properties map[string]*subschema
	patterns   []*subschema
	names      *subschema
	others     *subschema
	items      []*subschema
	isList     bool // items are for one item each
	more       *subschema
	contains   *subschema

	required, dependent int64 // errors that there can be
	allowed             int64 // bytes of enum and const
	isUnique, isClosed  bool
	format              string
	pattern             int64 // steps of the program
	patternKeys         int64 // cost of compiling the patterns of properties for a name

	place int // the parts that also hold for the same value come before
	state visit
}

type visit uint8

const (
	unseen visit = iota
	open
	done
)

const partBytes = 1536 // a part, parsed

var (
	errSelf  = errors.New("a schema must not be a part of itself for the same value")
	errLarge = errors.New("the schema is too large")
)

// schemaOf takes apart the schema in an operand; nil if it has none.
func schemaOf(t *ast.Term, left int64) *schema {
	s := &schema{left: left, refs: map[string]*subschema{}, ids: map[string]any{}}
	switch v := t.Value.(type) {
	case ast.String:
		shape := shapeOf(string(v))
		if shape.need().memory > left {
			s.err = errLarge
			return s
		}
		d := json.NewDecoder(strings.NewReader(string(v)))
		d.UseNumber()
		if d.Decode(&s.root) != nil {
			return nil
		}
	case ast.Object, *ast.Array:
		if sizeOf(v, left, deepest) > left/8 {
			s.err = errLarge
			return s
		}
		plain, err := ast.JSON(v)
		if err != nil {
			return nil
		}
		s.root = plain
	default:
		return nil
	}
	if root, ok := s.root.(map[string]any); ok {
		s.id, _ = idOf(root)
	}
	if s.err = s.look(s.root, true, ""); s.err == nil {
		s.part(s.root)
		for _, p := range s.parts {
			s.order(p)
		}
	}
	return s
}

// idOf returns the name that a schema gives itself, and by which member.
func idOf(m map[string]any) (id, key string) {
	key = "$id"
	if _, ok := m["id"]; ok {
		key = "id"
	}
	id, _ = m[key].(string)
	return id, key
}

// look finds the names of parts, and the references: no reference may lead out of the schema.
func (s *schema) look(v any, isRoot bool, base string) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := s.look(item, false, base); err != nil {
				return err
			}
		}
	case map[string]any:
		if id, _ := idOf(v); id != "" && !isRoot {
			if strings.HasPrefix(id, "#") {
				s.ids[id] = v
			} else {
				base = id
			}
		}
		if ref, ok := v["$ref"].(string); ok && (base != "" || !strings.HasPrefix(s.local(ref), "#")) {
			return fmt.Errorf("the reference '%s' leads out of the schema", shorten(ref))
		}
		for _, item := range v {
			if err := s.look(item, false, base); err != nil {
				return err
			}
		}
	}
	return nil
}

func shorten(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// local returns a reference to a part of the schema without the schema's name.
func (s *schema) local(ref string) string {
	if id := strings.TrimSuffix(s.id, "#"); id != "" {
		if rest, ok := strings.CutPrefix(ref, id); ok && (rest == "" || rest[0] == '#') {
			return "#" + strings.TrimPrefix(rest, "#")
		}
	}
	return ref
}

// part reads a schema.
func (s *schema) part(v any) *subschema {
	p := &subschema{}
	if !s.pay(partBytes) {
		return p
	}
	s.parts = append(s.parts, p)
	m, ok := v.(map[string]any)
	if !ok {
		return p
	}
	s.definitions(m)
	if ref, ok := m["$ref"].(string); ok {
		p.here = []*subschema{s.referenced(s.local(ref))}
		s.within(p, m) // which is parsed, and not asked
		p.here = p.here[:1]
		return p
	}
	s.within(p, m)
	return p
}

// pay counts what parts take, and reports whether there may be more.
func (s *schema) pay(bytes int64) bool {
	s.weight = add(s.weight, bytes)
	return s.weight <= s.left
}

func (s *schema) definitions(m map[string]any) {
	if parts, ok := m["definitions"].(map[string]any); ok {
		for _, v := range parts {
			s.part(v)
		}
	}
}

// referenced returns the part that a reference leads to. Each way to write it has one of its own.
func (s *schema) referenced(ref string) *subschema {
	if p, ok := s.refs[ref]; ok {
		return p
	}
	p := &subschema{}
	s.refs[ref] = p
	if target, ok := s.target(ref); ok {
		*p = *s.part(target)
		s.parts = append(s.parts, p)
	}
	return p
}

// target returns what a reference leads to.
func (s *schema) target(ref string) (any, bool) {
	if v, ok := s.ids[ref]; ok {
		return v, true
	}
	pointer, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil, false
	}
	at := s.root
	for i, step := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v) {
				return nil, false
			}
			at = v[n]
		default:
			return nil, false
		}
	}
	return at, true
}

// within takes apart what a schema says.
func (s *schema) within(p *subschema, m map[string]any) {
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := m[name].([]any); ok {
			for _, v := range list {
				p.here = append(p.here, s.part(v))
			}
		}
	}
	for _, name := range []string{"not", "if", "then", "else"} {
		if v, ok := m[name]; ok {
			p.here = append(p.here, s.part(v))
		}
	}
	s.object(p, m)
	s.array(p, m)
	s.scalar(p, m)
}

func (s *schema) object(p *subschema, m map[string]any) {
	if properties, ok := m["properties"].(map[string]any); ok {
		p.properties = make(map[string]*subschema, len(properties))
		for name, v := range properties {
			p.properties[name] = s.part(v)
		}
	}
	if patterns, ok := m["patternProperties"].(map[string]any); ok {
		for text, v := range patterns {
			n, _ := s.program(text)
			p.patternKeys = add(p.patternKeys, n)
			p.patterns = append(p.patterns, s.part(v))
		}
	}
	if v, ok := m["additionalProperties"]; ok {
		if isAllowed, is := v.(bool); is {
			p.isClosed = !isAllowed
		} else {
			p.others = s.part(v)
		}
	}
	if v, ok := m["propertyNames"]; ok {
		p.names = s.part(v)
	}
	if dependencies, ok := m["dependencies"].(map[string]any); ok {
		for _, v := range dependencies {
			if list, is := v.([]any); is {
				p.dependent += int64(len(list))
			} else {
				p.here = append(p.here, s.part(v))
			}
		}
	}
	if list, ok := m["required"].([]any); ok {
		p.required = int64(len(list))
		s.pay(square(p.required, 16))
	}
}

func (s *schema) array(p *subschema, m map[string]any) {
	switch v := m["items"].(type) {
	case nil:
	case []any:
		p.isList = true
		for _, item := range v {
			p.items = append(p.items, s.part(item))
		}
	default:
		p.items = []*subschema{s.part(v)}
	}
	if v, ok := m["additionalItems"]; ok {
		p.more = s.part(v)
	}
	if v, ok := m["contains"]; ok {
		p.contains = s.part(v)
	}
	p.isUnique = m["uniqueItems"] == true
}

func (s *schema) scalar(p *subschema, m map[string]any) {
	if list, ok := m["enum"].([]any); ok {
		p.allowed = 64 + jsonSize(list)
		s.pay(add(square(int64(len(list)), 16), 4*p.allowed))
	}
	if v, ok := m["const"]; ok {
		p.allowed += jsonSize(v)
	}
	p.format, _ = m["format"].(string)
	if text, ok := m["pattern"].(string); ok {
		cost, steps := s.program(text)
		p.pattern = steps
		s.pay(cost)
	}
	for _, name := range []string{"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		if n, ok := m[name].(json.Number); ok {
			if err := CheckNumber(string(n)); err != nil && s.err == nil {
				s.err = err
			}
			s.pay(numberSteps(n))
		}
	}
}

// program returns what it takes to compile a pattern, and how many steps its program has.
func (s *schema) program(text string) (cost, steps int64) {
	cost = multiply(2*sourceBytes, int64(len(text))) +
		classBytes*int64(strings.Count(text, `\p`)+strings.Count(text, `\P`)+strings.Count(text, "["))
	if add(cost, s.weight) > s.left {
		return cost, 0
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return cost, 0
	}
	steps = programSteps(tree)
	return add(4096, add(cost, multiply(instructionBytes, steps))), steps
}

// order gives parts their places, and finds those that are parts of themselves.
func (s *schema) order(root *subschema) {
	type step struct {
		of   *subschema
		next int
	}
	if root.state != unseen {
		return
	}
	stack := []step{{of: root}}
	root.state = open
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(top.of.here) {
			top.of.state = done
			top.of.place = s.places
			s.places++
			stack = stack[:len(stack)-1]
			continue
		}
		next := top.of.here[top.next]
		top.next++
		switch next.state {
		case unseen:
			next.state = open
			stack = append(stack, step{of: next})
		case open:
			s.err = errSelf
			return
		}
	}
}
