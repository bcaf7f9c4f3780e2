package config

import (
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

// at returns the error about the value at a path.
func at(o *manifest.Object, path, format string, args ...any) *manifest.Error {
	return &manifest.Error{File: o.File, Line: o.Line(path), Path: path, Msg: fmt.Sprintf(format, args...)}
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
