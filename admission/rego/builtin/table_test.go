package builtin

import (
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// TestTable: each of OPA's functions has one contract, with a bound in words that something
// keeps. A new version of OPA with a function that has none fails here.
func TestTable(t *testing.T) {
	known := map[string]bool{}
	for _, c := range Table() {
		for _, name := range c.Names {
			if ast.BuiltinMap[name] == nil {
				t.Errorf("OPA has no function %s", name)
			}
			if known[name] {
				t.Errorf("%s has two contracts", name)
			}
			known[name] = true
		}
		if c.Takes == "" && c.Keeper != Refused {
			t.Errorf("%v have no bound", c.Names)
		}
		if isKept := c.cost != nil || c.own != nil; isKept != (c.Keeper == Estimated || c.Keeper == Metered) &&
			c.Keeper != Refused {
			t.Errorf("%v are not kept to their bound by what the table says", c.Names)
		}
	}
	for _, decl := range ast.Builtins {
		if !known[decl.Name] {
			t.Errorf("%s has no contract: say what it takes at most, and who keeps it to that", decl.Name)
		}
	}
}

// TestGuard: each function that may make something is guarded, and asks for the context that has
// the budget.
func TestGuard(t *testing.T) {
	Guard()
	for _, c := range Table() {
		for _, name := range c.Names {
			if topdown.GetBuiltin(name) == nil {
				if c.Keeper != Evaluated && name != "print" {
					t.Errorf("OPA does not have the function %s", name)
				}
				continue
			}
			if ast.BuiltinMap[name].CanSkipBctx && c.Keeper != Passes {
				t.Errorf("%s is called without the budget", name)
			}
		}
	}
}

// TestUnknown: a function without a contract is not called.
func TestUnknown(t *testing.T) {
	err := unknown("new")(topdown.BuiltinContext{}, nil, nil)
	if want := "nothing is known of what new takes"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// contract returns the contract of a function.
func contract(t testing.TB, name string) Contract {
	t.Helper()
	for _, c := range Table() {
		if slices.Contains(c.Names, name) {
			return c
		}
	}
	t.Fatalf("%s has no contract", name)
	return Contract{}
}
