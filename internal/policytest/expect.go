package policytest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// problem is the body of a refusal.
type problem struct {
	Kind, Reason, Message string
	Details               struct{ Causes []testcase.Cause }
}

// refusals are the codes by which policies, schemas and limits refuse. Any other one has to be expected by its number:
// it rather says that the case itself is mistaken.
var refusals = []int{401, 403, 409, 413, 422, 429}

// compare returns how an answer differs from what is expected.
func compare(c *testCase, r *reply, golden json.RawMessage) (problems []string) {
	var p problem
	if r.code >= 400 {
		_ = json.Unmarshal(r.body, &p) // an answer that is no Status has no message
	}
	want := &c.Expect
	got := decision(r, want.Code)
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case c.violations != nil && slices.Contains([]string{"Allowed", "Warned", "Denied"}, got):
		return countViolations(c.violations, r, &p)
	case got != want.Decision:
		wrong("is %s, want %s%s", got, want.Decision, because(r, &p))
		return problems
	case want.Code != 0 && int(want.Code) != r.code:
		wrong("has the code %d, want %d%s", r.code, want.Code, because(r, &p))
	}
	if want.Message != "" && !hasText(p.Message, want.Message) &&
		!slices.ContainsFunc(p.Details.Causes,
			func(c testcase.Cause) bool { return hasText(c.Message, want.Message) }) {
		wrong("has the message %q, want %q in it", p.Message, want.Message)
	}
	if want.Causes != nil {
		problems = append(problems, compareCauses(p.Details.Causes, want.Causes)...)
	}
	for _, text := range want.Warnings {
		if !slices.ContainsFunc(r.warnings, func(w string) bool { return hasText(w, text) }) {
			wrong("has the warnings %q, want one with %q", r.warnings, text)
		}
	}
	if golden != nil && r.code < 400 {
		problems = append(problems, compareObjects(r.body, golden)...)
	}
	return problems
}

// constraintName matches the name of the constraint with which Gatekeeper's webhook, and the gateway, begin a message.
// The message that a suite speaks of has none.
var constraintName = regexp.MustCompile(`^\[[^\]]*\] `)

// countViolations returns which counts of violations are others than expected. They are what the policies say, or the
// causes of a refusal, or the warnings of constraints that only warn.
func countViolations(expected []violations, r *reply, p *problem) (problems []string) {
	var found []string
	for _, c := range p.Details.Causes {
		found = append(found, c.Message)
	}
	switch {
	case len(r.denials) > 0:
		found = r.denials
	case r.code < 400:
		found = slices.Clone(r.warnings)
	case len(found) == 0:
		found = []string{p.Message}
	}
	for i, message := range found {
		found[i] = constraintName.ReplaceAllString(message, "")
	}
	for _, v := range expected {
		count, which := 0, ""
		for _, message := range found {
			if v.message == nil || v.message.MatchString(message) {
				count++
			}
		}
		if v.message != nil {
			which = fmt.Sprintf(" that match %q", v.message)
		}
		if count < v.least || count > v.most {
			problems = append(problems, fmt.Sprintf("has %d violations%s, want %s; it has %q", count, which, v.wanted(),
				found))
		}
	}
	return problems
}

// wanted says how many violations there may be.
func (v *violations) wanted() string {
	if v.least == v.most {
		return fmt.Sprint(v.least)
	}
	return fmt.Sprintf("at least %d", v.least)
}

// decision returns the decision in an answer.
func decision(r *reply, expected int32) string {
	switch {
	case r.code < 400 && len(r.warnings) > 0:
		return "Warned"
	case r.code < 400:
		return "Allowed"
	case slices.Contains(refusals, r.code) || r.code == int(expected):
		return "Denied"
	}
	return fmt.Sprintf("answered with the code %d", r.code)
}

// because returns the reason that an answer gives.
func because(r *reply, p *problem) string {
	switch {
	case p.Message != "":
		return ": " + p.Message
	case r.code >= 400:
		return ": " + string(r.body)
	case len(r.warnings) > 0:
		return ": " + strings.Join(r.warnings, "; ")
	}
	return ""
}

func hasText(s, text string) bool { return strings.Contains(s, text) }

// compareCauses finds a cause for each that is expected, and names the ones that are left.
func compareCauses(got, want []testcase.Cause) (problems []string) {
	left := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(left, func(g testcase.Cause) bool {
			return (w.Field == "" || w.Field == g.Field) && hasText(g.Message, w.Message) &&
				(w.Reason == "" || w.Reason == g.Reason)
		})
		if i < 0 {
			problems = append(problems, "has no cause like "+show(w)+"; it has "+showAll(got))
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, g := range left {
		problems = append(problems, "has a cause that is not expected: "+show(g))
	}
	return problems
}

func show(c testcase.Cause) string {
	if c.Field == "" {
		return fmt.Sprintf("%q", c.Message)
	}
	return fmt.Sprintf("%s: %q", c.Field, c.Message)
}

func showAll(all []testcase.Cause) string {
	if len(all) == 0 {
		return "none"
	}
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = show(c)
	}
	return strings.Join(texts, ", ")
}

// servers are the members of metadata that a server sets.
var servers = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"}

// compareObjects names the fields in which two objects differ.
func compareObjects(got, want []byte) []string {
	var g, w any
	if err := json.Unmarshal(want, &w); err != nil {
		return []string{"the expected object is no JSON: " + err.Error()}
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return []string{"the answer is no JSON: " + err.Error()}
	}
	strip(g, w)
	return differences("", g, w, nil)
}

// strip takes out of the metadata what only a server knows and no test expects.
func strip(got, want any) {
	g, _ := got.(map[string]any)
	w, _ := want.(map[string]any)
	metadata, _ := g["metadata"].(map[string]any)
	expected, _ := w["metadata"].(map[string]any)
	for _, name := range servers {
		if _, ok := expected[name]; !ok {
			delete(metadata, name)
		}
	}
	if len(metadata) == 0 && expected == nil && metadata != nil {
		delete(g, "metadata")
	}
}

func differences(path string, got, want any, found []string) []string {
	g, isObject := got.(map[string]any)
	w, wantsObject := want.(map[string]any)
	if isObject && wantsObject {
		for _, key := range explanation.Keys(g, w) {
			at := strings.TrimPrefix(path+"."+key, ".")
			_, has := g[key]
			_, wants := w[key]
			switch {
			case !has:
				found = append(found, at+" is not set, want "+jsonOf(w[key]))
			case !wants:
				found = append(found, at+" is "+jsonOf(g[key])+", want it unset")
			default:
				found = differences(at, g[key], w[key], found)
			}
		}
		return found
	}
	gl, isList := got.([]any)
	wl, wantsList := want.([]any)
	if isList && wantsList && len(gl) == len(wl) {
		for i := range gl {
			found = differences(fmt.Sprintf("%s[%d]", path, i), gl[i], wl[i], found)
		}
		return found
	}
	if !reflect.DeepEqual(got, want) {
		found = append(found, path+" is "+jsonOf(got)+", want "+jsonOf(want))
	}
	return found
}

func jsonOf(v any) string {
	out, _ := json.Marshal(v) // what was read from JSON can be written
	return string(out)
}
