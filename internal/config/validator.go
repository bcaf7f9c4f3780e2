package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// Seconds is a duration in whole seconds.
type Seconds int32

// Duration converts s.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// Errors are all that is wrong with a configuration.
type Errors []error

// Error has one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (e Errors) Unwrap() []error { return e }

// A Problem is one thing that is wrong with a configuration.
type Problem struct {
	File string
	// Line and Column count from 1; 0 means all of them.
	Line, Column   int
	Field, Message string
}

// Problems returns what an error of Load says, with the places. A file is named where the error names none.
func Problems(file string, err error) (all []Problem) {
	errs := Errors{err}
	_ = errors.As(err, &errs) // any other error is one
	for _, one := range errs {
		p := Problem{File: file, Message: one.Error()}
		if at := (*manifest.Error)(nil); errors.As(one, &at) {
			p = Problem{at.File, at.Line, at.Column, at.Path, at.Msg}
		}
		all = append(all, p)
	}
	return all
}

// at returns the error about the value at a path.
func at(o *manifest.Object, path, format string, args ...any) *manifest.Error {
	p := o.Where(path)
	return &manifest.Error{File: p.File, Line: p.Line, Column: p.Column, Path: path, Msg: fmt.Sprintf(format, args...)}
}

// validator collects what is wrong with a file's values.
type validator struct {
	object *manifest.Object
	errs   Errors
}

// check records a problem with the value at path, unless the problem is empty.
func (v *validator) check(path, problem string) {
	if problem != "" {
		v.errs = append(v.errs, at(v.object, path, "%s", problem))
	}
}

// maxSeconds is a day: more than that is a mistake in the unit.
const maxSeconds = 24 * 60 * 60

func (v *validator) within(path string, value, low, high Seconds) { between(v, path, value, low, high) }

func between[N int32 | int64 | Seconds](v *validator, path string, value, low, high N) {
	if value < low || value > high {
		v.check(path, fmt.Sprintf("must be between %d and %d, inclusive, not %d", low, high, value))
	}
}

func notOneOf[E ~string](value string, known []E) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = "'" + string(k) + "'"
	}
	last := len(names) - 1
	return fmt.Sprintf("must be %s or %s, not '%s'", strings.Join(names[:last], ", "), names[last], value)
}

// atLeast checks that a time is no shorter than another one beside it, if both are in their bounds.
func (v *validator) atLeast(path string, value Seconds, name string, least Seconds) {
	if value < least && value >= 1 && least <= maxSeconds {
		v.check(path, fmt.Sprintf("must be greater than or equal to `%s`, which is %d", name, least))
	}
}
