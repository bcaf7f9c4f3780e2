package plan

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// How a ruleset is evaluated.
type variant string

const (
	whole variant = ""
	keyed variant = " for a key" // the key, or the value of a function, is known before
)

// manyRules are more than are evaluated without asking OPA's index which ones can matter.
const manyRules = 4

// ruleset returns the rules at a path. Its clauses are made later. It is nil if there are none for
// it.
func (b *builder) ruleset(path ast.Ref, node *ast.TreeNode, kind variant) *ruleset {
	name := path.String() + string(kind)
	if r, ok := b.byName[name]; ok {
		return r
	}
	r := &ruleset{id: next(&b.rulesets), index: node.Index, byRule: map[*ast.Rule]*clause{}}
	b.byName[name] = r
	if len(node.Children) > 0 || node.Index == nil {
		b.refuse("%s has rules below it", path)
		return nil
	}
	first := node.Values[0].Head
	isGround := true
	for _, rule := range node.Values {
		isGround = isGround && rule.Head.Reference.IsGround()
	}
	length := len(path)
	switch {
	case first.RuleKind() == ast.MultiValue:
		r.form = aSet
	case !isGround:
		r.form = anObject
		length++
	case len(first.Args) > 0:
		r.form = aFunction
	}
	params := len(first.Args)
	if kind == keyed {
		params++
	}
	for range params {
		r.params = append(r.params, next(&b.slots))
	}
	for _, rule := range node.Values {
		head := rule.Head
		if len(rule.Ref()) != length || head.RuleKind() != first.RuleKind() ||
			len(head.Args) != len(first.Args) ||
			r.form.isPartial() && (rule.Default || rule.Else != nil) {
			b.refuse("the rules of %s are of several forms", path)
			return nil
		}
		if rule.Default {
			r.otherwise = b.clause(r, rule, kind)
			continue
		}
		var group []*clause
		for ; rule != nil; rule = rule.Else {
			group = append(group, b.clause(r, rule, kind))
		}
		r.groups = append(r.groups, group)
	}
	if r.early, r.asking = early(r), b.asks(r); r.asking == atNoTime {
		r.index = nil
	}
	if params == 0 {
		r.key, r.isShared = b.sharedKey(path)
	}
	return r
}

func (b *builder) clause(r *ruleset, rule *ast.Rule, kind variant) *clause {
	c := &clause{rule: rule}
	r.byRule[rule] = c
	b.later = append(b.later, func() {
		s := newScope(b)
		s.isValue = !r.form.isPartial() && !r.early
		for i, arg := range rule.Head.Args {
			s.match(arg, inSlot(r.params[i]))
		}
		key := rule.Head.Key
		if r.form == anObject {
			key = rule.Ref()[len(rule.Ref())-1]
		}
		if kind == keyed {
			last := inSlot(r.params[len(r.params)-1])
			if r.form.isPartial() {
				s.match(key, last)
			} else {
				s.match(rule.Head.Value, last)
			}
		}
		s.body(rule.Body)
		var end step
		switch r.form {
		case anObject:
			end = &gather{
				of: r.id, key: s.evaluate(key, nil), value: s.evaluate(rule.Head.Value, nil),
				isObject: true, at: rule.Head.Location,
			}
		case aSet:
			end = &gather{of: r.id, key: s.evaluate(key, nil)}
		default:
			value := s.evaluate(rule.Head.Value, nil)
			s.refuseOrder(value)
			end = &yield{of: r.id, rule: rule, value: value}
		}
		c.body.start = s.end(end)
	})
	return c
}

// early reports whether the first value of a ruleset stands for all, as OPA has it: all are the
// same constant.
func early(r *ruleset) bool {
	var value *ast.Term
	for rule := range r.byRule {
		if rule.Default {
			continue
		}
		v := rule.Head.Value
		if rule.Head.DocKind() != ast.CompleteDoc ||
			v != nil && (!v.IsGround() || value != nil && !v.Equal(value)) {
			return false
		}
		if v != nil {
			value = v
		}
	}
	return true
}

// asks returns when it can matter which rules OPA's index leaves out for an evaluation: for the time
// that the others take, for an error in one that is left out, or for whether the rest have the same
// value.
func (b *builder) asks(r *ruleset) asking {
	if len(r.byRule) > manyRules {
		return beforehand
	}
	constants, fails, hasElse, readsData := 0, false, false, false
	for rule := range r.byRule {
		if rule.Default {
			continue
		}
		if v := rule.Head.Value; v != nil && v.IsGround() {
			constants++
		}
		fails = fails || mayFailFirst(rule.Body)
		hasElse, readsData = hasElse || rule.Else != nil, readsData || b.readsData(rule.Body)
	}
	switch {
	case !r.form.isPartial() && !r.early && constants > 0, fails && (hasElse || readsData):
		return beforehand
	case fails:
		return onError
	}
	return atNoTime
}

// readsData reports whether a body may read document data that no module defines. Of those OPA's index
// takes a number and the text of it for two keys, and its evaluator does not.
func (b *builder) readsData(body ast.Body) bool {
	reads := false
	ast.WalkRefs(body, func(r ast.Ref) bool {
		if !r[0].Equal(ast.DefaultRootDocument) {
			return reads
		}
		node := b.compiler.RuleTree.Child(r[0].Value)
		for at := 1; at < len(r) && node != nil && len(node.Values) == 0; at++ {
			node = node.Child(r[at].Value)
		}
		reads = reads || node == nil || len(node.Values) == 0
		return reads
	})
	return reads
}

// mayFailFirst reports whether something in a body may fail before the body reaches an expression
// by which OPA's index leaves the rule out.
func mayFailFirst(body ast.Body) bool {
	failed := false
	made := ast.NewVarSet() // values of calls, which the index does not know
	seen, read := ast.NewVarSet(), map[string]bool{}
	for _, e := range body {
		again := readsAgain(e, seen, read)
		if failed && !again && isIndexed(e) || matches(e, made) {
			return true
		}
		ast.WalkVars(e, func(v ast.Var) bool {
			seen.Add(v)
			return false
		})
		failed = failed || mayFail(e)
		if terms := e.Operands(); e.IsCall() && !e.IsEquality() && len(terms) > 0 {
			if v, ok := terms[len(terms)-1].Value.(ast.Var); ok {
				made.Add(v)
			}
		}
	}
	return false
}

// readsAgain reports whether an expression only gives a variable the value of a reference to the
// input that has a value, since an expression before read it. It notes what the expression reads.
func readsAgain(e *ast.Expr, seen ast.VarSet, read map[string]bool) bool {
	if e.Negated || !e.IsEquality() {
		return false
	}
	v, isVar := e.Operand(0).Value.(ast.Var)
	ref, isRef := e.Operand(1).Value.(ast.Ref)
	if !isVar || seen.Contains(v) || !isRef || !ref.HasPrefix(ast.InputRootRef) {
		return false
	}
	name := ref.String()
	was := read[name]
	read[name] = true
	return was
}

// isIndexed reports whether OPA's index may have an expression.
func isIndexed(e *ast.Expr) bool {
	if e.Negated {
		return false
	}
	if e.IsCall() && !e.IsEquality() {
		return calls(
			e, ast.Member, ast.Equal, ast.GlobMatch, ast.StartsWith, ast.EndsWith, ast.AnyPrefixMatch,
			ast.AnySuffixMatch,
		)
	}
	return true
}

// matches reports whether OPA's index may have an expression that may fail. What a text must begin or
// end with is not in the index if it is made by a call.
func matches(e *ast.Expr, made ast.VarSet) bool {
	if e.Negated || !e.IsCall() {
		return false
	}
	terms := e.Operands()
	if calls(e, ast.GlobMatch) {
		return len(terms) == 3
	}
	if len(terms) != 2 {
		return false
	}
	v, isVar := terms[1].Value.(ast.Var)
	return !(isVar && made.Contains(v)) &&
		calls(e, ast.StartsWith, ast.EndsWith, ast.AnyPrefixMatch, ast.AnySuffixMatch)
}

// mayFail reports whether the evaluation of an expression may end with an error.
func mayFail(e *ast.Expr) bool {
	terms, isList := e.Terms.([]*ast.Term)
	switch {
	case len(e.With) > 0:
		return true
	case isList && !e.IsEquality() && !prints(e) && !calls(e, neverFail...):
		return true
	}
	if one, ok := e.Terms.(*ast.Term); ok {
		terms = []*ast.Term{one}
	} else if !isList {
		return true
	}
	fails := false
	for _, t := range terms {
		if ast.IsComprehension(t.Value) {
			return true
		}
		ast.WalkRefs(t, func(r ast.Ref) bool {
			fails = fails || r[0].Equal(ast.DefaultRootDocument)
			return fails
		})
	}
	return fails
}

// neverFail are functions of any values.
var neverFail = []*ast.Builtin{
	ast.Member, ast.Equal, ast.NotEqual, ast.LessThan, ast.LessThanEq, ast.GreaterThan,
	ast.GreaterThanEq,
}

// calls reports whether an expression calls one of some functions.
func calls(e *ast.Expr, functions ...*ast.Builtin) bool {
	for _, f := range functions {
		if e.Operator().Equal(f.Ref()) {
			return true
		}
	}
	return false
}

// prints reports whether an expression gives a variable a text by a format that is known, and an
// array: it cannot fail.
func prints(e *ast.Expr) bool {
	terms, ok := e.Terms.([]*ast.Term)
	if !ok || e.Negated || len(e.With) > 0 || len(terms) != 4 || !e.IsCall() {
		return false
	}
	if ref, ok := terms[0].Value.(ast.Ref); !ok || !ref.Equal(ast.Sprintf.Ref()) {
		return false
	}
	_, hasFormat := terms[1].Value.(ast.String)
	_, hasItems := terms[2].Value.(*ast.Array)
	v, intoVar := terms[3].Value.(ast.Var)
	return hasFormat && hasItems && intoVar && !v.IsWildcard()
}
