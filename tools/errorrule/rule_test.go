package main

import (
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/tools/load/loadtest"
)

// TestViolations: a module on disk, with what may return nil, and what never does.
func TestViolations(t *testing.T) {
	packages := loadtest.Module(t, map[string]string{"room/a.go": `package room

import "errors"

type E struct{ Code int }

func (e *E) Error() string { return "" }

func (e *E) With(code int) *E { e.Code = code; return e }

type V struct{}

func (V) Error() string { return "" }

type Plain struct{}

func value() *Plain { return nil }

func returnsError() error { return nil }

func made() *E { return &E{} }

func local() *E {
	e := &E{}
	e.Code = 1
	return e
}

func chained() *E { return made().With(2) }

func coded(e *E) *E { e.Code = 3; return e }

func guarded(err error) *E {
	if e, is := errors.AsType[*E](err); is {
		return e
	}
	return made()
}

func badNil(ok bool) *E {
	if ok {
		return nil
	}
	return made()
}

func badVariable() *E {
	var e *E
	return e
}

func badAs(err error) *E {
	var e *E
	errors.As(err, &e)
	return e
}

func badUnguarded(err error) *E {
	e, _ := errors.AsType[*E](err)
	return e
}

func badElse(err error) *E {
	if e, is := errors.AsType[*E](err); is {
		return e
	} else {
		return e
	}
}

func badCall() *E { return badNil(true) }

func badArgument() *E { return coded(nil) }

func badOther() (int, *V) { return 0, nil }

func badNamed() (e *E) { return }

func badField(s struct{ e *E }) *E { return s.e }

type badInterface interface{ BadMethod() *E }

var badFunction = func() *E { return nil }
`})
	var got []string
	for _, f := range violations(packages) {
		got = append(got, f.name)
	}
	want := []string{
		"badNil", "badVariable", "badAs", "badUnguarded", "badElse", "badCall", "badArgument", "badOther", "badNamed",
		"badField",
		"BadMethod", "a function",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %v\nwant  %v", got, want)
	}
}
