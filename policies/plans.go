package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// A Plan tells how an expression in a policy file runs.
type Plan struct {
	// File, Line and Field are those of a [Finding].
	File  string
	Line  int
	Field string
	// Native: it runs without cel-go's interpreter.
	Native bool
	// Reason says why it does not.
	Reason string
}

// String formats p as one line, `file:line: field.path: native` or
// `file:line: field.path: cel-go: reason`.
func (p Plan) String() string {
	how := "native"
	if !p.Native {
		how = "cel-go: " + p.Reason
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Field, how)
}

// Plans tells how the expressions in policy files run, sorted by file and line.
// Those of objects that do not compile are left out.
func Plans(paths []string) []Plan {
	l := newLoader()
	l.planning = true
	l.load(readSource(paths))
	slices.SortStableFunc(l.plans, func(a, b Plan) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return l.plans
}

// expressionKeys are the members of all kinds that hold expressions.
var expressionKeys = document.NewNames([]string{"rule", "expression", "messageExpression", "valueExpression", "keyExpression", "when"})

// planned notes how the expressions of an object run, if somebody asks.
func (l *loader) planned(o *manifest.Object, programs []*cel.Program) {
	if !l.planning || len(programs) == 0 {
		return
	}
	d, err := document.Parse(o.JSON, document.Limits{Bytes: manifest.MaxBytes * 2, Depth: 1000})
	if err != nil {
		return // which has been found
	}
	defer d.Release()
	bySource := make(map[string]*cel.Program, len(programs))
	for _, p := range programs {
		if p != nil {
			bySource[strings.TrimSpace(p.Source())] = p
		}
	}
	l.plansIn(o, d.Root(), bySource)
}

func (l *loader) plansIn(o *manifest.Object, n document.Node, bySource map[string]*cel.Program) {
	if n.Kind() == document.String && expressionKeys.Member(n) >= 0 {
		if p := bySource[strings.TrimSpace(n.Str())]; p != nil {
			path := n.Path()
			native, reason := p.Plan()
			l.plans = append(l.plans, Plan{File: o.File, Line: o.Line(path), Field: path, Native: native, Reason: reason})
		}
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		l.plansIn(o, m, bySource)
	}
}
