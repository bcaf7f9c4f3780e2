// Package finding has what authors of policy files should know about them: what a finding is, lists of them, and the
// forms in which they are written, in lines for people and for other programs. What finds is in policies, as files are
// loaded, and in policies/lint.
package finding

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/schema"
)

// Severity says what a finding means for the policy set.
type Severity uint8

const (
	// Error makes the set unusable.
	Error Severity = iota
	// Warning leaves the set usable, though perhaps not as its author means it.
	Warning
	// Gap leaves the set usable: an OpenAPI document rightly asks for what the gateway cannot enforce, and all else of
	// the document is in force.
	Gap
	// Note leaves the set usable: nearly every document says it, and a gateway does not enforce it.
	Note
	// Wording leaves the set usable as it is meant: a message of its author's is not worded as the API conventions ask.
	Wording
	// Remark leaves the set usable as it is meant: it says what follows from the files.
	Remark
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
	// Column counts the letters of the line from 1; 0 means the line as a whole.
	Column int
	// Excerpt is the line of the file that Column points into; empty if it would show nothing more.
	Excerpt string
	// Rule is the id of the check that found it; empty for what keeps an object from being read or compiled.
	Rule string
	// Owner is who mends the file; empty if the finding does not say.
	Owner string
}

// Point lets f point into a line of text, which its file, with the content, has in the line of f,
// indented if need be. If the file writes the text in another way, f points at the whole line.
func (f *Finding) Point(content []byte, text string, column int) {
	f.Column, f.Excerpt = 0, ""
	lines := bytes.Split(content, []byte("\n"))
	if column == 0 || f.Line < 1 || f.Line > len(lines) {
		return
	}
	line := strings.TrimSuffix(string(lines[f.Line-1]), "\r")
	if indent, ok := strings.CutSuffix(line, text); ok && strings.TrimSpace(indent) == "" {
		f.Column, f.Excerpt = len(indent)+column, line
	}
}

// Text formats f as one line for people, `file:line:column: field.path: message`.
func (f Finding) Text() string {
	place := f.File
	if f.Line > 0 {
		place += fmt.Sprintf(":%d", f.Line)
		if f.Column > 0 {
			place += fmt.Sprintf(":%d", f.Column)
		}
	}
	return place + ": " + f.said()
}

// Named is Text with the id of the check.
func (f Finding) Named() string {
	if f.Rule == "" {
		return f.Text()
	}
	return f.Text() + " [" + f.Rule + "]"
}

// Attributes are what a structured log has of f.
func (f Finding) Attributes() []any {
	if f.Rule == "" {
		return []any{"finding", f.Text()}
	}
	return []any{"finding", f.Text(), "rule", f.Rule}
}

// String is Text without the column.
func (f Finding) String() string {
	f.Column = 0
	return f.Text()
}

// said formats what f says of its place.
func (f Finding) said() string {
	var b strings.Builder
	if f.Field != "" {
		b.WriteString(f.Field)
		b.WriteString(": ")
	}
	switch f.Severity {
	case Error:
	case Gap, Note, Remark:
		b.WriteString("note: ")
	default:
		b.WriteString("warning: ")
	}
	for i, line := range strings.Split(f.Message, "\n") {
		if i > 0 {
			line = " " + strings.TrimSpace(line)
		}
		b.WriteString(strings.TrimRight(line, " \r"))
	}
	if f.Owner != "" {
		b.WriteString(" (" + f.Owner + ")")
	}
	return b.String()
}

// Quoted are names as messages have them.
func Quoted(names []string) string { return "'" + strings.Join(names, "', '") + "'" }

// HasErrors reports whether a finding is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

const (
	// sameWarnings is how many warnings that say the same about a file are shown.
	sameWarnings = 5
	// alikeWarnings is how many warnings are shown that say the same about a file but for the names in it.
	alikeWarnings = 10
	// sameGaps and alikeGaps are the same of gaps, which ask for no change.
	sameGaps, alikeGaps = 1, 5
)

// quoted are the names in a message.
var quoted = regexp.MustCompile("'[^']*'|`[^`]*`")

// Summarized returns the findings with notes and those about wording counted, one for each file: there may be thousands
// of them in the files of others, who will not change them, and what matters comes before. Of warnings and
// gaps that say the same about a file, or the same of other names, it returns a few, and the last of them says how many
// more there are.
func Summarized(found []Finding) []Finding { return SummarizedBy(found, "gateway check", summaryOf) }

// SummarizedBy is Summarized for another command, in the words of say, of n findings of a severity.
func SummarizedBy(found []Finding, command string, say func(s Severity, n int) string) []Finding {
	counted := map[Severity]map[string]*count{Note: {}, Wording: {}}
	type warning struct{ file, message string }
	type group struct{ seen, last, more int } // last is the index of the last one that is shown
	same, alike := map[warning]*group{}, map[warning]*group{}
	short := make([]Finding, 0, len(found))
	for _, f := range found {
		if files := counted[f.Severity]; files != nil {
			of := member(files, f.File)
			if of.n++; of.n == 1 {
				of.first = f
			}
			continue
		}
		if f.Severity == Warning || f.Severity == Gap {
			most, mostAlike := sameWarnings, alikeWarnings
			if f.Severity == Gap {
				most, mostAlike = sameGaps, alikeGaps
			}
			equal := member(same, warning{f.File, f.Message})
			if equal.seen == most {
				equal.more++
				continue
			}
			named := member(alike, warning{f.File, quoted.ReplaceAllString(f.Message, "'")})
			if named.seen == mostAlike {
				named.more++
				continue
			}
			equal.seen, equal.last = equal.seen+1, len(short)
			named.seen, named.last = named.seen+1, len(short)
		}
		short = append(short, f)
	}
	for _, g := range same {
		switch {
		case g.more == 1:
			short[g.last].Message += fmt.Sprintf("; the same is true of 1 more place, which '%s -v' lists", command)
		case g.more > 1:
			short[g.last].Message += fmt.Sprintf("; the same is true of %d more places, which '%s -v' lists", g.more,
				command)
		}
	}
	for _, g := range alike {
		switch {
		case g.more == 1:
			short[g.last].Message += fmt.Sprintf("; 1 more place differs in its names alone, and '%s -v' lists it",
				command)
		case g.more > 1:
			short[g.last].Message += fmt.Sprintf("; %d more places differ in their names alone, and '%s -v' lists them",
				g.more, command)
		}
	}
	for _, s := range [...]Severity{Note, Wording} {
		for _, file := range slices.Sorted(maps.Keys(counted[s])) {
			of := counted[s][file]
			short = append(short, Finding{File: file, Line: of.first.Line, Column: of.first.Column,
				Message: say(s, of.n), Severity: s})
		}
	}
	return short
}

// A count is how many findings about a file are counted, with the first of them.
type count struct {
	n     int
	first Finding
}

// member returns the value of a key, which it adds if need be.
func member[K comparable, V any](of map[K]*V, key K) *V {
	if of[key] == nil {
		of[key] = new(V)
	}
	return of[key]
}

// summaryOf says how many findings of a severity there are.
func summaryOf(s Severity, n int) string {
	switch {
	case s == Note && n == 1:
		return "1 note on what nearly every document has, such as answers, which are not enforced; 'gateway check -v' shows it"
	case s == Note:
		return fmt.Sprintf("%d notes on what nearly every document has, such as answers, which are not enforced; 'gateway check -v' lists them", n)
	case n == 1:
		return "1 message is not worded as the API conventions ask; 'gateway check -v' shows it"
	}
	return fmt.Sprintf("%d messages are not worded as the API conventions ask; 'gateway check -v' lists them", n)
}

// Sort sorts by severity, so that errors come first, and wording and remarks last, and by place, and takes out
// repetitions.
func Sort(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), Compare(&a, &b))
	})
	return slices.Compact(findings)
}

// Compare compares findings by their places, and then by their messages.
func Compare(a, b *Finding) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}

// A List collects what is found.
type List struct {
	Found []Finding
}

// File records an error about a file as a whole.
func (f *List) File(name, format string, args ...any) {
	f.Found = append(f.Found, Finding{File: name, Message: fmt.Sprintf(format, args...)})
}

// At records a finding about a field of an object.
func (f *List) At(o *manifest.Object, severity Severity, path, format string, args ...any) {
	one := Of(o, path)
	one.Severity, one.Message = severity, fmt.Sprintf(format, args...)
	f.Found = append(f.Found, one)
}

// By records what a check, by its id, found about a field of an object.
func (f *List) By(rule string, o *manifest.Object, severity Severity, path, format string, args ...any) {
	f.At(o, severity, path, format, args...)
	f.Found[len(f.Found)-1].Rule = rule
}

// Of returns a finding without words about a field of an object.
func Of(o *manifest.Object, path string) Finding {
	at := o.Where(path)
	return Finding{File: at.File, Line: at.Line, Column: at.Column, Field: at.Path}
}

// Fields records Kubernetes' findings about an object.
func (f *List) Fields(o *manifest.Object, severity Severity, errs field.ErrorList) {
	for _, err := range errs {
		path := err.Field
		if path == "<nil>" {
			path = ""
		}
		if err.Origin == schema.OriginWording {
			f.At(o, Wording, path, "%s", BodyOf(err))
			continue
		}
		f.At(o, severity, path, "%s", BodyOf(err))
	}
}

// BodyOf is an error without its field. A value that is no JSON of the file but one of Kubernetes' own structs, which
// no author would know again, is left out.
func BodyOf(err *field.Error) string {
	if err.Type == field.ErrorTypeInvalid && err.Detail != "" {
		if t := reflect.TypeOf(err.BadValue); t != nil && (t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer) {
			return err.Type.String() + ": " + err.Detail
		}
	}
	return err.ErrorBody()
}

// Read records what the reader of files found, and reports whether there is no error among it.
func (f *List) Read(errs []*manifest.Error) bool {
	ok := true
	for _, err := range errs {
		severity := Warning
		if !err.Warning {
			severity, ok = Error, false
		}
		f.Found = append(f.Found, Finding{File: err.File, Line: err.Line, Column: err.Column, Field: err.Path,
			Message: err.Msg, Severity: severity})
	}
	return ok
}
