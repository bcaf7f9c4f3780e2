package policytest

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/policies"
)

// Coverage says how much of the policies the cases have reached.
type Coverage struct {
	// Policies are objects with expressions or modules, and covered if one of the expressions, or a
	// rule of the modules, was evaluated.
	Policies CoverageCount `json:"policies"`
	// Rules are expressions and rules in Rego, and covered if they were evaluated.
	Rules CoverageCount `json:"rules"`
	// Branches are the two outcomes of each condition, and the one of any other expression. The
	// outcomes of a rule in Rego are that it has a value, and that it has none.
	Branches CoverageCount `json:"branches"`
	// Missing are the expressions and rules that are not covered, or not by both outcomes.
	Missing []Gap `json:"missing,omitempty"`
}

// A CoverageCount is a part of all.
type CoverageCount struct {
	Covered int `json:"covered"`
	Total   int `json:"total"`
}

// Percent returns the share in percent, rounded down.
func (s CoverageCount) Percent() int {
	if s.Total == 0 {
		return 100
	}
	return 100 * s.Covered / s.Total
}

func (s *CoverageCount) count(is bool) {
	s.Total++
	if is {
		s.Covered++
	}
}

// A Gap is an expression, or a rule in Rego, that is not covered.
type Gap struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Field is the field of the expression, or the name of the rule.
	Field string `json:"field"`
	Why   string `json:"why"`
}

// coverage observes expressions and rules in Rego, the same one in all sets that are compiled of its
// file.
type coverage struct {
	mu       sync.Mutex
	observed map[fieldPosition]*observed
	rules    map[rego.Rule]*rego.Observation
	owners   map[owner][]rego.Rule
}

// owner is a policy with modules.
type owner struct{ kind, name string }

type fieldPosition struct {
	file, field string
	line        int
}

type observed struct {
	policies.Plan
	cel.Observation
}

func newCoverage() *coverage {
	return &coverage{
		observed: map[fieldPosition]*observed{}, rules: map[rego.Rule]*rego.Observation{},
		owners: map[owner][]rego.Rule{},
	}
}

// rule returns the observation of a rule. It is a rego.Observer.
func (c *coverage) rule(r rego.Rule) *rego.Observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.rules[r]
	if o == nil {
		o = &rego.Observation{}
		c.rules[r] = o
	}
	return o
}

// know notes which policies have which rules.
func (c *coverage) know(of []policies.Modules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range of {
		c.owners[owner{m.Kind, m.Name}] = m.Program.Rules()
	}
}

func (c *coverage) observe(of *policies.Compiled) {
	c.know(of.Modules)
	for _, m := range of.Modules {
		m.Program.Observe(c.rule)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range of.Plans {
		if p.Program == nil {
			continue // the modules have it
		}
		at := fieldPosition{p.File, p.Field, p.Line}
		o := c.observed[at]
		if o == nil {
			o = &observed{Plan: p}
			c.observed[at] = o
		}
		p.Program.Observe(&o.Observation)
	}
}

// isCondition reports whether the expression at a field is true or false.
func isCondition(field string) bool {
	return strings.HasSuffix(field, ".rule") || strings.HasSuffix(field, ".when") ||
		strings.HasSuffix(field, ".expression") &&
			(strings.Contains(field, "validations[") || strings.Contains(field, "matchConditions["))
}

func (c *coverage) summary() Coverage {
	var s Coverage
	type name struct{ file, kind, name string }
	reached := map[name]bool{}
	for _, o := range c.observed {
		of := name{o.File, o.Kind, o.Name}
		reached[of] = reached[of] || o.Ran()
		s.Rules.count(o.Ran())
		gap := Gap{o.File, o.Line, o.Field, ""}
		switch {
		case !isCondition(o.Field):
			s.Branches.count(o.Ran())
		default:
			s.Branches.count(o.WasTrue())
			s.Branches.count(o.WasFalse())
			if o.Ran() && !o.WasTrue() {
				gap.Why = "is never true"
			} else if o.Ran() && !o.WasFalse() {
				gap.Why = "is never false"
			}
		}
		if !o.Ran() {
			gap.Why = "is never evaluated"
		}
		if gap.Why != "" {
			s.Missing = append(s.Missing, gap)
		}
	}
	for _, is := range reached {
		s.Policies.count(is)
	}
	c.addRules(&s)
	slices.SortFunc(s.Missing, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
	})
	return s
}

// addRules adds the rules in Rego.
func (c *coverage) addRules(s *Coverage) {
	for _, rules := range c.owners {
		known, ran := false, false
		for _, r := range rules {
			o := c.rules[r]
			known = known || o != nil
			ran = ran || o != nil && o.Ran()
		}
		if known {
			s.Policies.count(ran)
		}
	}
	for r, o := range c.rules {
		s.Rules.count(o.Ran())
		why := ""
		s.Branches.count(o.WasDefined())
		switch {
		case !o.Ran():
			why = "is never evaluated"
		case !o.WasDefined():
			why = "never has a value"
		}
		if !r.IsFact {
			s.Branches.count(o.WasUndefined())
			if o.Ran() && !o.WasUndefined() {
				why = "always has a value"
			}
		}
		if why != "" {
			s.Missing = append(s.Missing, Gap{r.File, r.Line, r.Name, why})
		}
	}
}
