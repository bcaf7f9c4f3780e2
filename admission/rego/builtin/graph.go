package builtin

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// reachable is graph.reachable. OPA looks at the edges of a node as often as edges lead to it.
func reachable(bctx topdown.BuiltinContext, b Budget, operands []*ast.Term, iter func(*ast.Term) error) error {
	graph, err := builtins.ObjectOperand(operands[0].Value, 1)
	if err != nil {
		return err
	}
	switch initial := operands[1].Value.(type) {
	case *ast.Array, ast.Set:
	default:
		return builtins.NewOperandTypeErr(2, initial, "{array, set}")
	}
	m := &meter{budget: b}
	reached := ast.NewSet()
	var queue []*ast.Term
	visit := func(t *ast.Term) {
		if m.take(24) && !reached.Contains(t) && graph.Get(t) != nil && m.take(itemBytes) {
			reached.Add(t)
			queue = append(queue, t)
		}
	}
	forEach(operands[1].Value, visit)
	for len(queue) > 0 && !m.over {
		node := queue[0]
		queue = queue[1:]
		forEach(graph.Get(node).Value, visit)
	}
	if !m.ask() {
		return halt(b, bctx.Location)
	}
	return iter(ast.NewTerm(reached))
}

// paths are the paths in a graph. Each place of a path has a copy of the path that leads there.
func paths(o operands) need {
	g, ok := o.of[0].Value.(ast.Object)
	if !ok {
		return need{}
	}
	cost, within := int64(0), map[string]bool{}
	var visit func(t *ast.Term, depth int64)
	visit = func(t *ast.Term, depth int64) {
		if cost += itemBytes * depth; cost > o.left {
			return
		}
		key := t.String()
		cost += int64(len(key))
		edges := g.Get(t)
		if edges == nil || within[key] {
			return
		}
		within[key] = true
		until := func(next *ast.Term) bool {
			visit(next, depth+1)
			return cost > o.left
		}
		switch edges := edges.Value.(type) {
		case *ast.Array:
			edges.Until(until)
		case ast.Set:
			edges.Until(until)
		}
		delete(within, key)
	}
	forEach(o.of[1].Value, func(t *ast.Term) {
		if cost <= o.left {
			visit(t, 1)
		}
	})
	return need{memory: multiply(2, cost)}
}
