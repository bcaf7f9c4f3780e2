package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// A rendering is a run of a template of strings.render_template. A template may have loops in loops
// and call itself, so that the budget is asked in each loop, each template, and for all that is
// printed.
type rendering struct {
	meter meter
	made  strings.Builder
}

const (
	actionBytes = 8 << 10 // an action of a template, which may be in as many others as there are
	boundName   = "bound" // of the function that looks at what a loop goes through
)

func render(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
	text, err := builtins.StringOperand(operands[0].Value, 1)
	if err != nil {
		return err
	}
	variables, err := builtins.ObjectOperand(operands[1].Value, 2)
	if err != nil {
		return err
	}
	held := add(multiply(actionBytes, int64(strings.Count(string(text), "{{"))),
		128*int64(strings.Count(string(text), " ")))
	held = add(held, multiply(256, int64(strings.Count(string(text), "("))))
	held = add(held, add(4*int64(len(text)), multiply(8, sizeOf(variables, b.Left(), deepest))))
	if !b.Spend(held) {
		return halt(b, bctx.Location)
	}
	defer func() { b.Return(held) }()
	var values map[string]any
	if err := ast.As(variables, &values); err != nil {
		return err
	}
	for name, v := range values {
		values[name] = withoutMethods(v)
	}
	r := &rendering{meter: meter{budget: b}}
	t, err := r.parse(string(text))
	if err != nil {
		return err
	}
	err = t.Execute(r, values)
	if !r.meter.ask() {
		return halt(b, bctx.Location)
	}
	if err != nil {
		return err
	}
	return iter(ast.StringTerm(strings.ReplaceAll(r.made.String(), "<no value>", "<undefined>")))
}

// number is a json.Number without methods.
type number string

// withoutMethods replaces the numbers in a JSON value: no other part of it has methods, which a template could call.
func withoutMethods(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			v[i] = withoutMethods(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withoutMethods(v[key])
		}
	}
	return v
}

// parse parses a template, and has it ask.
func (r *rendering) parse(text string) (*template.Template, error) {
	t, err := template.New("template").Funcs(template.FuncMap{
		"print":    r.printing(fmt.Sprint),
		"println":  r.printing(fmt.Sprintln),
		"html":     r.printing(template.HTMLEscaper),
		"js":       r.printing(template.JSEscaper),
		"urlquery": r.printing(template.URLQueryEscaper),
		"printf":   r.printf,
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	asking := template.FuncMap{"once": r.once, "again": r.again, boundName: r.bound}
	both, err := template.New("").Funcs(asking).Parse("{{once}}{{again}}")
	if err != nil {
		return nil, err
	}
	steps := both.Root.Nodes
	t.Funcs(asking)
	for _, of := range t.Templates() {
		if of.Tree == nil || of.Root == nil {
			continue
		}
		hasOthers := asks(of.Root, steps[0])
		if of.Name() != t.Name() || hasOthers {
			first := steps[0]
			if hasOthers {
				first = steps[1]
			}
			of.Root.Nodes = append([]parse.Node{first}, of.Root.Nodes...)
		}
	}
	return t, nil
}

// asks has each loop of a list ask. It reports whether the list calls templates.
func asks(list *parse.ListNode, once parse.Node) (hasOthers bool) {
	if list == nil {
		return false
	}
	both := func(b *parse.BranchNode) {
		hasOthers = asks(b.List, once) || hasOthers
		hasOthers = asks(b.ElseList, once) || hasOthers
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.IfNode:
			both(&n.BranchNode)
		case *parse.WithNode:
			both(&n.BranchNode)
		case *parse.RangeNode:
			both(&n.BranchNode)
			n.List.Nodes = append([]parse.Node{once}, n.List.Nodes...)
			within := *n.Pipe
			within.Decl = nil
			n.Pipe.Cmds = []*parse.CommandNode{{
				NodeType: parse.NodeCommand, Pos: within.Pos,
				Args: []parse.Node{parse.NewIdentifier(boundName).SetPos(within.Pos), &within},
			}}
		case *parse.TemplateNode:
			hasOthers = true
		}
	}
	return hasOthers
}

// once asks for a round of a loop.
func (r *rendering) once() (string, error) { return r.paid(stepBytes) }

// again asks for a template that calls others, which may be itself.
func (r *rendering) again() (string, error) { return r.paid(actionBytes) }

// stepBytes is what a step of an evaluation costs.
const stepBytes = 64

func (r *rendering) paid(cost int64) (string, error) {
	if !r.meter.take(cost) {
		return "", errBudget
	}
	return "", nil
}

// bound returns what a loop goes through. The keys of an object are sorted.
func (r *rendering) bound(v any) (any, error) {
	if members, ok := v.(map[string]any); ok {
		if _, err := r.paid(itemBytes * int64(len(members))); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Write implements io.Writer.
func (r *rendering) Write(text []byte) (int, error) {
	if _, err := r.paid(2 * int64(len(text))); err != nil {
		return 0, err
	}
	return r.made.Write(text)
}

// printing is a function that prints values, and asks for them.
func (r *rendering) printing(f func(...any) string) func(...any) (string, error) {
	return func(values ...any) (string, error) {
		if _, err := r.paid(multiply(6, r.size(values))); err != nil {
			return "", err
		}
		return f(values...), nil
	}
}

func (r *rendering) printf(format string, values ...any) (string, error) {
	largest := int64(0)
	for _, v := range values {
		largest = max(largest, r.size(v))
	}
	verbs := int64(strings.Count(format, "%"))
	cost := add(int64(len(format)),
		add(multiply(verbs, multiply(4, largest)), add(widths(format), maxWidth*int64(strings.Count(format, "*")))))
	if _, err := r.paid(multiply(5, cost)); err != nil {
		return "", err
	}
	return fmt.Sprintf(format, values...), nil
}

// size is roughly how long a printed value is.
func (r *rendering) size(v any) int64 {
	size := int64(32)
	switch v := v.(type) {
	case string:
		return size + int64(len(v))
	case []any:
		for _, item := range v {
			if !r.meter.take(1) {
				return size
			}
			size = add(size, r.size(item))
		}
	case map[string]any:
		for key, item := range v {
			if !r.meter.take(8) {
				return size
			}
			size = add(size, int64(len(key))+r.size(item))
		}
	case number:
		return size + int64(len(v))
	}
	return size
}
