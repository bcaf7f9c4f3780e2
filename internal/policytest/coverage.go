package policytest

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/policies"
)

// Coverage says how much of the policies the cases have reached.
type Coverage struct {
	// Policies are objects with expressions, and covered if one of the expressions was evaluated.
	Policies Share `json:"policies"`
	// Rules are expressions, and covered if they were evaluated.
	Rules Share `json:"rules"`
	// Branches are the two outcomes of each condition, and the one of any other expression.
	Branches Share `json:"branches"`
	// Missing are the expressions that are not covered, or not by both outcomes.
	Missing []Gap `json:"missing,omitempty"`
}

// A Share is a part of all.
type Share struct {
	Covered int `json:"covered"`
	Total   int `json:"total"`
}

// Percent returns the share in percent, rounded down.
func (s Share) Percent() int {
	if s.Total == 0 {
		return 100
	}
	return 100 * s.Covered / s.Total
}

func (s *Share) count(is bool) {
	s.Total++
	if is {
		s.Covered++
	}
}

// A Gap is an expression that is not covered.
type Gap struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Field string `json:"field"`
	Why   string `json:"why"`
}

// coverage observes expressions, the same one in all sets that are compiled of its file.
type coverage struct {
	mu       sync.Mutex
	observed map[place]*observed
}

type place struct {
	file, field string
	line        int
}

type observed struct {
	policies.Plan
	cel.Observation
}

func newCoverage() *coverage { return &coverage{observed: map[place]*observed{}} }

func (c *coverage) observe(plans []policies.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range plans {
		at := place{p.File, p.Field, p.Line}
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
		strings.HasSuffix(field, ".expression") && (strings.Contains(field, "validations[") || strings.Contains(field, "matchConditions["))
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
	slices.SortFunc(s.Missing, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
	})
	return s
}
