package cel_test

import (
	"context"
	"fmt"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// An expression is compiled once; each request evaluates it about its own object, which is not decoded for it.
func Example() {
	program, err := cel.NewAdmissionCompiler(false).Condition(`object.spec.replicas <= 10`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range []string{`{"spec": {"replicas": 3}}`, `{"spec": {"replicas": 12}}`, `{"spec": {}}`} {
		d, err := document.Parse([]byte(object), document.Limits{})
		if err != nil {
			fmt.Println(err)
			return
		}
		f := cel.NewFrame(context.Background())
		f.Vars().Set(value.Object, d.Root(), nil)
		ok, err := program.EvalBool(f, f.Vars())
		fmt.Println(ok, err)
		f.Release()
		d.Release()
	}
	// Output:
	// true <nil>
	// false <nil>
	// false expression 'object.spec.replicas <= 10' resulted in error: no such key: replicas
}
