package cel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/admission-gateway/gateway/internal/cel/outcome"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// constantEnv has no variables.
var constantEnv = sync.OnceValues(func() (*env, error) { return newEnv(nil) })

// AlwaysFails returns why an expression has no value, whatever the request: it reads no variable and fails, as
// bool(string(dyn(1.5))) does, or constants in it make it fail, as in self.size / 0. It is nil for every other
// expression, also for one that has a value because its logic leaves the failing part out.
func (p *Parsed) AlwaysFails() error {
	if p.isFailing {
		return p.failing
	}
	p.isFailing = true
	if tree, _ := p.tree(); tree != nil && !readsVariable(tree) {
		// else compiling it says what is wrong, if anything is
		p.failing = alwaysFails(p.text)
	}
	if fate, err := p.constantFate(); p.failing == nil && fate == outcome.AlwaysErrs {
		p.failing = errors.New(Prefixed(err, FailsAlways+": "))
	}
	return p.failing
}

// alwaysFails returns why an expression that reads no variable fails.
func alwaysFails(expression string) error {
	e, err := constantEnv()
	if err != nil {
		return nil
	}
	ast, issues := e.Compile(expression)
	if issues != nil {
		return nil // it reads a variable, or compiling it says what is wrong
	}
	p, err := e.plan(expression, ast.NativeRep(), nil)
	if err != nil {
		return nil
	}
	f := NewFrame(context.Background())
	defer f.Release()
	_, err = p.evalKept(f, f.Vars())
	var failure *Error
	if !errors.As(err, &failure) || failure.Cause != value.Failed {
		return nil
	}
	return fmt.Errorf("always fails, since it depends on no object: %s", failure.Detail)
}
