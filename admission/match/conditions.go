package match

import (
	"errors"
	"slices"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/status"
)

// Conditions are the compiled match conditions of a policy.
type Conditions []*cel.Program

// Match reports whether all of them are true, within a budget of their own. One that is false
// decides, even if others failed. They do not see the variable namespaceObject.
func (c Conditions) Match(f *cel.Frame, v *cel.Vars) (bool, error) {
	if len(c) == 0 {
		return true, nil
	}
	f.SetBudget(cel.MatchConditionsBudget)
	var failures []error
	for _, p := range c {
		ok, err := p.EvalBool(f, v)
		switch {
		case err != nil && fatal(err):
			return false, err
		case err != nil:
			failures = append(failures, err)
		case !ok:
			return false, nil
		}
	}
	switch len(failures) {
	case 0:
		return true, nil
	case 1:
		return false, failures[0]
	}
	texts := make([]string, len(failures))
	for i, err := range failures {
		texts[i] = err.Error()
	}
	return false, errors.New(status.List(texts))
}

// NeedNoObject reports whether one of them is certain before an object is read.
func (c Conditions) NeedNoObject() bool {
	return slices.ContainsFunc(c, func(p *cel.Program) bool { return p != nil && p.NeedsNoObject() })
}

// Exclude reports whether one that needs no object is false, so that they do not match whatever the object is.
func (c Conditions) Exclude(f *cel.Frame, v *cel.Vars) bool {
	f.SetBudget(cel.MatchConditionsBudget)
	for _, p := range c {
		if !p.NeedsNoObject() {
			continue
		}
		if ok, err := p.EvalBool(f, v); err == nil && !ok {
			return true
		}
	}
	return false
}

// fatal reports whether nothing more can be evaluated for the request.
func fatal(err error) bool {
	var e *cel.Error
	return errors.As(err, &e) && e.Fatal()
}
