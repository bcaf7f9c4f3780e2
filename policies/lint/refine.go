package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// Refine makes findings exact: it finds the columns, takes apart what compilers say of one
// expression, one finding for each mistake, and proposes the names that may have been meant.
func Refine(found []finding.Finding, files []source.File) []finding.Finding {
	r := &refiner{lines: map[string][]string{}, files: files}
	for _, f := range files {
		r.lines[f.Name] = strings.Split(string(f.Data), "\n")
	}
	all := make([]finding.Finding, 0, len(found))
	seen := make(map[finding.Finding]bool, len(found))
	for _, f := range found {
		parts := r.expression(f)
		if parts == nil {
			if f.Column == 0 {
				f.Column = r.column(f)
			}
			parts = []finding.Finding{f}
		}
		for _, p := range parts {
			if !seen[p] {
				seen[p] = true
				all = append(all, p)
			}
		}
	}
	return withoutRepeated(all)
}

// withoutRepeated leaves out a finding of an expression if another one says that it fails for this reason.
func withoutRepeated(all []finding.Finding) []finding.Finding {
	said := map[finding.Finding]bool{}
	for _, f := range all {
		if prefix := failing.FindString(f.Message); prefix != "" {
			f.Message = f.Message[len(prefix):]
			said[f] = true
		}
	}
	return slices.DeleteFunc(all, func(f finding.Finding) bool { return said[f] })
}

type refiner struct {
	lines     map[string][]string
	files     []source.File
	functions []string
	fields    map[string]bool
}

// line returns a line of a file, counted from 1; empty if there is none.
func (r *refiner) line(file string, n int) string {
	if lines := r.lines[file]; n >= 1 && n <= len(lines) {
		return strings.TrimRight(lines[n-1], "\r")
	}
	return ""
}

// column returns the position of the key of a finding's field in its line; 0 0 if that is unknown.
func (r *refiner) column(f finding.Finding) int {
	line := r.line(f.File, f.Line)
	if line == "" {
		return 0
	}
	if key := lastKey(f.Field); key != "" {
		for _, written := range []string{key + ":", `"` + key + `":`, "'" + key + "':"} {
			if i := strings.Index(line, written); i >= 0 {
				return letters(line[:i]) + 1
			}
		}
	}
	return letters(line) - letters(strings.TrimLeft(line, " \t")) + 1
}

func letters(s string) int { return utf8.RuneCountInString(s) }

// lastKey returns the last name of a field path.
func lastKey(path string) string {
	path = strings.TrimRight(path, "]")
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		path = path[i+1:]
	}
	if _, err := strconv.Atoi(path); err == nil {
		return ""
	}
	return path
}

// celError matches one of the errors that cel-go joins: place, words, and the line of the expression.
var celError = regexp.MustCompile(`ERROR: <input>:(\d+):(\d+): (.*)\n \| (.*)\n \| (\.*\^+)`)

// expression takes the finding about an expression apart; nil if it is not about one.
func (r *refiner) expression(f finding.Finding) []finding.Finding {
	matches := celError.FindAllStringSubmatch(f.Message, -1)
	if matches == nil {
		return nil
	}
	var all []finding.Finding
	for _, m := range matches {
		row, _ := strconv.Atoi(m[1]) // the pattern has digits alone
		at, _ := strconv.Atoi(m[2])
		one := f
		one.Message = r.words(m[3], m[4], f.Field, f.Message)
		if one.Rule == "" {
			one.Rule = "expression"
		}
		one.Line, one.Column, one.Excerpt = r.place(f, m[4], row, aim(m[3], m[4], at))
		all = append(all, one)
	}
	return all
}

// aim moves a place in a row of an expression from the bracket of a call, or the dot before a field, to the name that
// is wrong.
func aim(problem, row string, at int) int {
	problem = strings.TrimPrefix(problem, failing.FindString(problem))
	m := undeclared.FindStringSubmatch(problem)
	if m == nil {
		m = undefined.FindStringSubmatch(problem)
	}
	all := []rune(row)
	if m == nil || at < 1 || at > len(all) {
		return at
	}
	switch name := letters(m[1]); {
	case all[at-1] == '(' && at > name:
		return at - name
	case all[at-1] == '.':
		return at + 1
	}
	return at
}

// place finds a letter of an expression in its file: the row of the expression is looked for from the line of the field
// on.
func (r *refiner) place(f finding.Finding, text string, row, at int) (line, column int, excerpt string) {
	needle := strings.TrimRight(text, " ")
	// A row of a block stands in a line of its own, below the key unless the expression begins in its line.
	for n := f.Line + row - 1; n <= f.Line+row+1; n++ {
		got := r.line(f.File, n)
		if i := strings.Index(got, needle); i >= 0 && needle != "" {
			return n, letters(got[:i]) + at, got
		}
	}
	return f.Line, at, text // written with escapes: the expression itself is shown
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']+)' \(in container ''\)$`)
	undefined  = regexp.MustCompile(`^undefined field '([^']+)'$`)
	failing    = regexp.MustCompile(`^` + cel.FailsAlways + `(?: of [^:]+)?: `)
	expecting  = regexp.MustCompile(` expecting \{.*\}$`)
)

// words says what is wrong with an expression, and what may have been meant.
func (r *refiner) words(problem, row, path, message string) string {
	if prefix := failing.FindString(problem); prefix != "" {
		return prefix + r.words(problem[len(prefix):], row, path, message)
	}
	if m := undeclared.FindStringSubmatch(problem); m != nil {
		if i := strings.Index(row, m[1]+"("); i >= 0 {
			if r.functions == nil {
				r.functions = cel.FunctionNames()
			}
			return fmt.Sprintf("there is no function '%s'%s", m[1], manifest.Suggest(m[1], slices.Values(r.functions)))
		}
		_, advice, _ := strings.Cut(message, "; the policy files must")
		if advice != "" {
			return fmt.Sprintf("there is no variable '%s'; the policy files must%s", m[1], advice)
		}
		if slices.Contains(variables, m[1]) {
			return fmt.Sprintf("the variable '%s' is not available here: %s", m[1], unavailable(m[1], path))
		}
		return fmt.Sprintf("there is no variable '%s'%s", m[1], manifest.Suggest(m[1], slices.Values(variables)))
	}
	if m := undefined.FindStringSubmatch(problem); m != nil {
		return fmt.Sprintf("the schema has no field '%s'%s", m[1], manifest.Suggest(m[1], r.known(message)))
	}
	return expecting.ReplaceAllString(problem, "")
}

// unavailable returns why an expression may not read a variable that others may.
func unavailable(name, path string) string {
	isRule := strings.Contains(path, "openAPIV3Schema") || strings.Contains(path, "x-kubernetes-validations")
	switch {
	case name == "self" || name == "oldSelf":
		return "it is for rules of schemas; policies read `object` and `oldObject`"
	case isRule:
		return "rules of schemas read `self` and `oldSelf`, and nothing of the request"
	case name == "params":
		return "the policy has no `paramKind`"
	case name == "variables" && strings.Contains(path, "matchConditions"):
		return "match conditions are evaluated before variables are"
	case name == "authorizer" && strings.HasSuffix(path, "messageExpression"):
		return "a message may not depend on the authorizer, as in Kubernetes"
	case name == "authorizer":
		return "this expression may not ask the authorizer"
	}
	return "this expression is evaluated without it"
}

// variables are the names that expressions may read.
var variables = []string{"object", "oldObject", "self", "oldSelf", "request", "params", "namespaceObject", "variables",
	"authorizer", "state", "http"}
