package match

import (
	"errors"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/status"
)

// Conditions are the compiled match conditions of a policy.
type Conditions []*cel.Program

// Match reports whether all of them are true, within a budget of their own. One that is false
// decides, whatever failed before it. They do not see the variable namespaceObject.
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

// fatal reports whether nothing more can be evaluated for the request.
func fatal(err error) bool {
	var e *cel.Error
	return errors.As(err, &e) && e.Fatal()
}
