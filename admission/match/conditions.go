package match

import (
	"errors"
	"strings"

	"github.com/admission-gateway/gateway/internal/cel"
)

// Conditions are the compiled match conditions of a policy.
type Conditions []*cel.Program

// Hold tells whether all of them hold, within a budget of their own: one that
// does not settles it, whatever failed before it. They do not see the variable
// namespaceObject.
func (c Conditions) Hold(f *cel.Frame, v *cel.Vars) (bool, error) {
	if len(c) == 0 {
		return true, nil
	}
	f.SetBudget(cel.MatchConditionsBudget)
	var failures []error
	for _, p := range c {
		holds, err := p.EvalBool(f, v)
		switch {
		case err != nil && fatal(err):
			return false, err
		case err != nil:
			failures = append(failures, err)
		case !holds:
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
	return false, errors.New("[" + strings.Join(texts, ", ") + "]")
}

// fatal tells whether nothing more can be evaluated for the request.
func fatal(err error) bool {
	var e *cel.Error
	return errors.As(err, &e) && e.Fatal()
}
