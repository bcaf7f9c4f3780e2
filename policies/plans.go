package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/modules"
	"github.com/admission-gateway/gateway/policies/source"
)

// A Plan says how an expression in a policy file runs, or a rule in Rego.
type Plan struct {
	// File, Line and Field are its position, as in a [Finding]. For a rule in Rego, Field is its
	// name and Line the beginning of the policy.
	File  string
	Line  int
	Field string
	// Native: it runs without cel-go's interpreter, or OPA's evaluator.
	Native bool
	// Engine runs it otherwise; empty: cel-go.
	Engine string
	// Reason says why it does not run natively.
	Reason string
	// Program is the compiled expression; nil for a rule in Rego.
	Program *cel.Program
	// Kind and Name are of the object that the expression is in.
	Kind, Name string
}

// String formats p as one line, `file:line: field.path: native` or
// `file:line: field.path: cel-go: reason`; OPA instead of cel-go for a rule in Rego.
func (p Plan) String() string {
	how := "native"
	if !p.Native {
		how = cmp.Or(p.Engine, "cel-go") + ": " + p.Reason
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Field, how)
}

// Plans returns how the expressions in policy files run, sorted by file and line. Objects that do
// not compile are left out.
func Plans(paths []string) []Plan {
	return CompileWithPlans(source.Read(paths, &source.Progress{})).Plans
}

// Compiled has the policy files as [CompileWithPlans] compiles them.
type Compiled struct {
	// Set is nil if a finding is an error.
	Set   *Set
	Found []Finding
	// Plans are the expressions, Modules the modules in Rego of each policy.
	Plans   []Plan
	Modules []Modules
	// Suites are the modules that have tests among or beside them.
	Suites []modules.Suite
}

// Modules are the modules in Rego of an object.
type Modules struct {
	Kind, Name string
	Program    *rego.Program
}

// CompileWithPlans compiles files as Compile does, and returns how their expressions run. It leaves
// out the warnings about the types and the wording of expressions, which take longer than
// everything else.
func CompileWithPlans(s *source.Source) *Compiled { return CompileWithPlansFor(s, &Gateway{}) }

// CompileWithPlansFor is CompileWithPlans for a gateway. If its routes are known, what the files ask for that it does
// not have is found too.
func CompileWithPlansFor(s *source.Source, g *Gateway) *Compiled {
	l := newLoader(g)
	l.plans.on, l.common = true, nil // each place of an expression has a program of its own
	c := &Compiled{Set: l.load(s)}
	if c.Found = l.Found; g.Routes != nil && !finding.HasErrors(c.Found) {
		c.Found = append(c.Found, c.Set.lacking(*g)...)
	}
	if c.Found = finding.Sort(c.Found); finding.HasErrors(c.Found) {
		c.Set = nil
	}
	if c.Set != nil {
		c.Set.successes = l.plans.answers
	}
	c.Plans, c.Modules, c.Suites = l.plans.list, l.plans.modules, part[regoPolicies](l).modules.Suites(s.Files)
	slices.SortStableFunc(c.Plans,
		func(a, b Plan) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return c
}

// expressionKeys are the members of all kinds that hold expressions.
var expressionKeys = document.NewNames([]string{"rule", "expression", "messageExpression", "valueExpression",
	"keyExpression", "when"})

// plans collects how expressions run, if that is wanted.
type plans struct {
	on      bool
	list    []Plan
	modules []Modules
	answers []resource.Success
	focus   string // the file that advice is wanted about; "" means all
}

// advise reports whether advice about a file is wanted. It takes longer than everything else.
func (p *plans) advise(file string) bool { return !p.on && (p.focus == "" || p.focus == file) }

// noteAnswers notes how operations of a document are answered.
func (p *plans) noteAnswers(o *manifest.Object) {
	if !p.on {
		return
	}
	if d, err := openapi.New(o.Document()); err == nil {
		p.answers = append(p.answers, openapi.Successes(d)...)
	}
}

// noteModules notes the modules of an object; nil if it has none.
func (p *plans) noteModules(o *manifest.Object, m *rego.Program) {
	if p.on && m != nil {
		p.modules = append(p.modules, Modules{o.Kind, o.Name, m})
	}
}

// noteRules notes how the rules in Rego of an object run.
func (p *plans) noteRules(o *manifest.Object, rules ...*rego.Query) {
	if !p.on {
		return
	}
	for _, q := range rules {
		if q == nil {
			continue
		}
		native, reason := q.Native()
		p.list = append(p.list, Plan{
			File: o.File, Line: o.Line(""), Field: q.Rule(), Native: native, Engine: "OPA", Reason: reason,
			Kind: o.Kind, Name: o.Name,
		})
	}
}

// template notes what a template runs.
func (p *plans) template(o *manifest.Object, t *gatekeeper.Template) {
	p.note(o, t.Programs())
	p.noteModules(o, t.Modules())
	p.noteRules(o, t.Rule())
}

// note notes how the expressions of an object run.
func (p *plans) note(o *manifest.Object, programs []*cel.Program) {
	if !p.on || len(programs) == 0 {
		return
	}
	bySource := make(map[string][]*cel.Program, len(programs))
	for _, p := range programs {
		if p != nil {
			source := strings.TrimSpace(p.Source())
			bySource[source] = append(bySource[source], p)
		}
	}
	p.in(o, o.Document().Root(), bySource)
}

// in notes the expressions below a node. Several places may have the same text: each has the next program of that text,
// and the last one stands for all places that are left.
func (p *plans) in(o *manifest.Object, n document.Node, bySource map[string][]*cel.Program) {
	if n.Kind() == document.String && expressionKeys.Member(n) >= 0 {
		source := strings.TrimSpace(n.Str())
		if all := bySource[source]; len(all) > 0 {
			if len(all) > 1 {
				bySource[source] = all[1:]
			}
			path := n.Path()
			native, reason := all[0].Plan()
			at := o.Where(path)
			p.list = append(p.list, Plan{File: at.File, Line: at.Line, Field: at.Path, Native: native, Reason: reason,
				Program: all[0], Kind: o.Kind, Name: o.Name})
		}
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		p.in(o, m, bySource)
	}
}
