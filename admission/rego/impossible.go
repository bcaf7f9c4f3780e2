package rego

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// Impossible returns the rules that can never have a value, of those that a policy asks: OPA's type checker proves, for
// all objects of a JSON Schema, that they read what no object has. With clauses also a rule is found that has others of
// its name beside it. What stands in a negation or a comprehension proves nothing.
func (p *Program) Impossible(object map[string]any, clauses bool, rules ...*Query) (all Errors) {
	if input, _ := p.replaced(); input {
		return nil
	}
	modules := p.modules()
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, inputSchema(object))
	c := p.newCompiler(false).WithSchemas(schemas).WithSkipStages(ast.StageBuildComprehensionIndices)
	if c.Compile(copied(modules)); !c.Failed() {
		return nil
	}
	i := impossibles{wrong: map[spot]reason{}, rules: map[string][]*ast.Rule{}, known: map[string]reason{}}
	for _, err := range c.Errors {
		switch err.Details.(type) {
		case *ast.RefErrInvalidDetail, *ast.RefErrUnsupportedDetail:
			// the schema knows no null, so that what is compared may fit
			i.wrong[spotOf(err.Location)] = reason{err}
		}
	}
	for _, m := range modules {
		for _, r := range m.Rules {
			name := r.Ref().GroundPrefix().String()
			i.rules[name] = append(i.rules[name], r)
		}
	}
	for _, q := range rules {
		name := q.rule
		var found []reason
		if why := i.rule(name); why.is() {
			found = append(found, why)
		} else if clauses {
			for _, r := range i.rules[name] {
				if why := i.clause(r); why.is() {
					found = append(found, why)
				}
			}
		}
		for _, why := range found {
			e := Error{Message: "'" + name[strings.LastIndexByte(name, '.')+1:] +
				"' can never have a value here, whatever the object: " + why.text()}
			e.locate(p.sources, why.err.Location)
			all = append(all, e)
		}
	}
	all.sort()
	return slices.Compact(all)
}

// inputSchema is the schema of an input whose object has a schema.
func inputSchema(object map[string]any) map[string]any {
	review, input := map[string]any{namespaceObjectName: map[string]any{}, "http": map[string]any{}}, map[string]any{}
	for _, name := range reviewMembers {
		review[name] = map[string]any{}
	}
	review["object"] = object
	for _, name := range policyMembers {
		input[name] = map[string]any{}
	}
	both := map[string]any{"type": "object", "properties": review}
	input["review"], input["request"] = both, both
	return map[string]any{"type": "object", "properties": input}
}

// A reason is an error of the type checker by which a rule can never have a value; the zero reason is none.
type reason struct{ err *ast.Error }

func (r reason) is() bool { return r.err != nil }

// text says what is not there, and which name may have been meant.
func (r reason) text() string {
	detail, _ := r.err.Details.(*ast.RefErrInvalidDetail)
	if detail == nil || len(detail.OneOf) == 0 {
		return r.err.Message
	}
	have, _ := detail.Ref[detail.Pos].Value.(ast.String)
	return r.err.Message + manifest.Suggest(string(have), func(yield func(string) bool) {
		for _, v := range detail.OneOf {
			if name, is := v.(ast.String); is && !yield(string(name)) {
				return
			}
		}
	})
}

// impossibles knows which rules can never have a value.
type impossibles struct {
	wrong map[spot]reason        // what the type checker says, by the place
	rules map[string][]*ast.Rule // by name
	known map[string]reason      // what was found of a name
}

// rule returns why none of the rules of a name can have a value; none if one may.
func (i *impossibles) rule(name string) (why reason) {
	if found, is := i.known[name]; is {
		return found
	}
	i.known[name] = reason{}
	for _, r := range i.rules[name] {
		one := i.clause(r)
		if !one.is() {
			return reason{}
		}
		if !why.is() {
			why = one
		}
	}
	i.known[name] = why
	return why
}

// clause returns why a rule can never have a value; none if it may.
func (i *impossibles) clause(r *ast.Rule) reason {
	if r.Default || r.Else != nil {
		return reason{}
	}
	in := within{i, r.Module, declared(r)}
	for _, e := range r.Body {
		if why := in.expr(e); why.is() {
			return why
		}
	}
	if why := in.term(r.Head.Key); why.is() {
		return why
	}
	return in.term(r.Head.Value)
}

// declared are the variables of a rule, which hide rules of the same name.
func declared(r *ast.Rule) ast.VarSet {
	vars := ast.NewVarSet()
	note := func(t *ast.Term) {
		ast.WalkVars(t, func(v ast.Var) bool {
			vars.Add(v)
			return false
		})
	}
	for _, arg := range r.Head.Args {
		note(arg)
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		switch t := e.Terms.(type) {
		case *ast.SomeDecl:
			for _, s := range t.Symbols {
				if call, is := s.Value.(ast.Call); is { // the last operand is what the others are looked for in
					for _, operand := range call[1 : len(call)-1] {
						note(operand)
					}
				} else {
					note(s)
				}
			}
		case *ast.Every:
			note(t.Value)
			if t.Key != nil {
				note(t.Key)
			}
		}
		if e.IsAssignment() {
			note(e.Operand(0))
		}
		return false
	})
	return vars
}

// within looks at the expressions of one rule.
type within struct {
	*impossibles
	module   *ast.Module
	declared ast.VarSet
}

// expr returns why an expression is never met. What is negated, or evaluated with something else in place of the input,
// is left out.
func (w *within) expr(e *ast.Expr) reason {
	if e.Negated || len(e.With) > 0 {
		return reason{}
	}
	if why := w.wrong[spotOf(e.Location)]; why.is() {
		return why
	}
	switch t := e.Terms.(type) {
	case *ast.Term:
		return w.term(t)
	case *ast.SomeDecl:
		for _, s := range t.Symbols {
			if call, is := s.Value.(ast.Call); is { // some x in xs
				return w.call(call)
			}
		}
	case []*ast.Term:
		return w.call(t)
	}
	return reason{}
}

func isComprehension(t *ast.Term) bool {
	switch t.Value.(type) {
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return true
	}
	return false
}

// call returns why a call never has a value: the function never has, or one of its operands.
func (w *within) call(terms []*ast.Term) reason {
	for _, t := range terms[1:] {
		if why := w.term(t); why.is() {
			return why
		}
	}
	operator, ok := terms[0].Value.(ast.Ref)
	if !ok {
		return reason{}
	}
	if operator.Equal(ast.Member.Ref()) || operator.Equal(ast.MemberWithKey.Ref()) {
		if ref, is := refOf(terms[len(terms)-1]); is {
			return w.item(ref)
		}
	}
	return w.value(operator)
}

func refOf(t *ast.Term) (ast.Ref, bool) {
	switch v := t.Value.(type) {
	case ast.Ref:
		return v, true
	case ast.Var:
		return ast.Ref{t}, true
	}
	return nil, false
}

// term returns why a term never has a value.
func (w *within) term(t *ast.Term) (why reason) {
	if t == nil || isComprehension(t) {
		return reason{}
	}
	if why = w.wrong[spotOf(t.Location)]; why.is() {
		return why
	}
	each := func(t *ast.Term) {
		if !why.is() {
			why = w.term(t)
		}
	}
	switch v := t.Value.(type) {
	case ast.Call:
		return w.call(v)
	case ast.Var:
		return w.value(ast.Ref{t})
	case ast.Ref:
		for _, step := range v[1:] {
			each(step)
		}
		if !why.is() {
			why = cmp.Or(w.value(v), w.step(v))
		}
	case *ast.Array:
		v.Foreach(each)
	case ast.Set:
		v.Foreach(each)
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) {
			each(key)
			each(value)
		})
	}
	return why
}

// named returns the rules that a reference leads to, and the steps beyond them; "" if they are not known.
func (w *within) named(ref ast.Ref) (name string, beyond int) {
	head, ok := ref[0].Value.(ast.Var)
	if !ok || w.declared.Contains(head) {
		return "", 0
	}
	full := ref
	if !ref.HasPrefix(ast.DefaultRootRef) {
		full = w.module.Package.Path.Append(ast.StringTerm(string(head))).Concat(ref[1:])
	}
	for n := len(full); n > 1; n-- {
		if name := full[:n].String(); w.rules[name] != nil {
			return name, len(full) - n
		}
	}
	return "", 0
}

// value returns why the value of a rule, or of a function, is never there.
func (w *within) value(ref ast.Ref) reason {
	name, _ := w.named(ref)
	if name == "" || slices.ContainsFunc(w.rules[name],
		func(r *ast.Rule) bool { return r.Head.Key != nil || r.Head.HasDynamicRef() }) {
		return reason{} // a set, or an object, is empty at least
	}
	return w.rule(name)
}

// step returns why a reference into a set, or an object, leads nowhere: it is always empty.
func (w *within) step(ref ast.Ref) reason {
	if name, beyond := w.named(ref); name != "" && beyond > 0 {
		return w.rule(name)
	}
	return reason{}
}

// item returns why a set, or an object, never has an item.
func (w *within) item(ref ast.Ref) reason {
	if name, beyond := w.named(ref); name != "" && beyond == 0 {
		return w.rule(name)
	}
	return reason{}
}
