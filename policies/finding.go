package policies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// Severity says what a finding means for the policy set.
type Severity uint8

const (
	// Error makes the set unusable.
	Error Severity = iota
	// Warning leaves the set usable, though perhaps not as its author means it.
	Warning
)

// Finding is something about a policy file that its author should know.
type Finding struct {
	// File is the file's name as the paths led to it.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Field is the field's path within its object; empty means the object.
	Field string
	// Message says what is wrong. It may have several lines.
	Message  string
	Severity Severity
}

// String formats f as one line, `file:line: field.path: message`.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	if f.Field != "" {
		b.WriteString(f.Field)
		b.WriteString(": ")
	}
	if f.Severity == Warning {
		b.WriteString("warning: ")
	}
	for i, line := range strings.Split(f.Message, "\n") {
		if i > 0 {
			line = " " + strings.TrimSpace(line)
		}
		b.WriteString(strings.TrimRight(line, " \r"))
	}
	return b.String()
}

// HasErrors tells whether a finding is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

// sortFindings sorts by place and takes out repetitions.
func sortFindings(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings)
}

// findings collects what is found.
type findings struct {
	list []Finding
}

// file records an error about a file as a whole.
func (f *findings) file(name, format string, args ...any) {
	f.list = append(f.list, Finding{File: name, Message: fmt.Sprintf(format, args...)})
}

// at records a finding about a field of an object.
func (f *findings) at(o *manifest.Object, severity Severity, path, format string, args ...any) {
	f.list = append(f.list, Finding{File: o.File, Line: o.Line(path), Field: path, Message: fmt.Sprintf(format, args...), Severity: severity})
}

// fields records Kubernetes' findings about an object.
func (f *findings) fields(o *manifest.Object, severity Severity, errs field.ErrorList) {
	for _, err := range errs {
		path := err.Field
		if path == "<nil>" {
			path = ""
		}
		f.at(o, severity, path, "%s", bodyOf(err))
	}
}

// bodyOf is an error without its field. A value that is no JSON of the file but one of Kubernetes' own structs, which
// no author would know again, is left out.
func bodyOf(err *field.Error) string {
	if err.Type == field.ErrorTypeInvalid && err.Detail != "" {
		if t := reflect.TypeOf(err.BadValue); t != nil && (t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer) {
			return err.Type.String() + ": " + err.Detail
		}
	}
	return err.ErrorBody()
}

// read records what the reader of files found; it tells whether it found no error.
func (f *findings) read(errs []*manifest.Error) bool {
	ok := true
	for _, err := range errs {
		severity := Warning
		if !err.Warning {
			severity, ok = Error, false
		}
		f.list = append(f.list, Finding{File: err.File, Line: err.Line, Field: err.Path, Message: err.Msg, Severity: severity})
	}
	return ok
}
