package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// An Aspect is one thing in which an answer may differ from the recorded one.
type Aspect string

// The aspects of an answer.
const (
	Code     Aspect = "code"     // the HTTP status
	Reason   Aspect = "reason"   // the Status' reason; not compared if the recorded answer is no Status
	Fields   Aspect = "fields"   // the set of the causes' fields
	Message  Aspect = "message"  // the Status' message
	Object   Aspect = "object"   // the object without the metadata that a server keeps itself
	Metadata Aspect = "metadata" // that metadata: generation, deletion and list metadata
	Warnings Aspect = "warnings" // the Warning headers, in any order
)

// Aspects lists every aspect in the order of their weight.
func Aspects() []Aspect {
	return []Aspect{Code, Reason, Fields, Object, Metadata, Warnings, Message}
}

// A Difference is one aspect in which the answer to a request is not the recorded one.
type Difference struct {
	Step      int // 0 for the case's request, 1 for the first that follows, …
	Aspect    Aspect
	Want, Got string
}

func (d Difference) String() string {
	step := ""
	if d.Step > 0 {
		step = fmt.Sprintf("follow %d: ", d.Step)
	}
	return fmt.Sprintf("%s%s: want %s, got %s", step, d.Aspect, d.Want, d.Got)
}

// A Result has what came of playing a case.
type Result struct {
	Case        *Case
	Setup       []Response // answers to the setup requests
	Got         Response   // the answer, with those to the requests that follow
	Differences []Difference
}

// Agrees reports whether the answers are the recorded ones in all the aspects named.
func (r *Result) Agrees(aspects ...Aspect) bool {
	return !slices.ContainsFunc(r.Differences, func(d Difference) bool { return slices.Contains(aspects, d.Aspect) })
}

// Explain returns the differences in the aspects named, one a line.
func (r *Result) Explain(aspects ...Aspect) string {
	var lines []string
	for _, d := range r.Differences {
		if slices.Contains(aspects, d.Aspect) {
			lines = append(lines, d.String())
		}
	}
	return strings.Join(lines, "\n")
}

// compare fills in the differences. If two real servers answered differently, the nearer one
// counts.
func (r *Result) compare() {
	r.Differences = r.against(&r.Case.Expect)
	if kube := r.Case.ExpectKube; kube != nil {
		if d := r.against(kube); len(d) < len(r.Differences) {
			r.Differences = d
		}
	}
}

func (r *Result) against(want *Response) []Difference {
	all := compareAnswers(nil, 0, want, &r.Got, r.Case.OrderUnstable)
	for i := range min(len(want.Follow), len(r.Got.Follow)) {
		all = compareAnswers(all, i+1, &want.Follow[i], &r.Got.Follow[i], r.Case.OrderUnstable)
	}
	return all
}

func compareAnswers(to []Difference, step int, want, got *Response, anyOrder bool) []Difference {
	differs := func(a Aspect, w, g any) {
		to = append(to, Difference{step, a, fmt.Sprint(w), fmt.Sprint(g)})
	}
	if want.Code != got.Code {
		differs(Code, want.Code, got.Code)
	}
	if want.Reason != nil {
		if got.Reason == nil {
			differs(Reason, *want.Reason, "no Status")
		} else if *want.Reason != *got.Reason {
			differs(Reason, *want.Reason, *got.Reason)
		}
	}
	if w, g := fieldSet(want), fieldSet(got); !slices.Equal(w, g) {
		differs(Fields, w, g)
	}
	if want.Reason != nil && !sameMessage(want, got, anyOrder) {
		differs(Message, want.Message, got.Message)
	}
	if want.Object != nil {
		to = compareObjects(to, step, want.Object, got.Object)
	}
	if w, g := sorted(want.Warnings), sorted(got.Warnings); !slices.EqualFunc(w, g, matches) {
		differs(Warnings, w, g)
	}
	return to
}

// fieldSet returns the causes' fields, each once, in order. Kubernetes writes <nil> for an error
// without a field, and a dot before some paths of CEL value errors: the first names no field, and
// the second is the same field. The denials of policies name no field there; causes that the
// gateway derives come on top and do not count, and neither do the items that a rule's demand on a
// list fails for.
func fieldSet(a *Response) []string {
	set := map[string]bool{}
	for _, c := range a.Causes {
		field := strings.TrimPrefix(c.Field, ".")
		if field != "" && field != "<nil>" && !strings.HasPrefix(c.Message, denial) && !a.isItem(c) {
			set[field] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// isItem reports whether a cause is one that the message does not repeat, for an item of the field that another one
// names.
func (a *Response) isItem(c Cause) bool {
	if strings.Contains(a.Message, c.Field+": "+c.Message) {
		return false
	}
	return slices.ContainsFunc(a.Causes,
		func(whole Cause) bool { return whole.Field != "" && strings.HasPrefix(c.Field, whole.Field+"[") })
}

// denial is how Kubernetes and the gateway begin the message of a policy's denial.
const denial = "ValidatingAdmissionPolicy '"

// sameMessage compares messages; if the order of causes is random, it compares the causes in any
// order. Kubernetes names the first denial alone, the gateway further ones after it.
func sameMessage(want, got *Response, anyOrder bool) bool {
	if first, _, more := strings.Cut(got.Message, "; "+denial); more && strings.Contains(want.Message, denial) {
		return matches(want.Message, first)
	}
	if !anyOrder || len(want.Causes) < 2 {
		return matches(want.Message, got.Message)
	}
	text := func(causes []Cause) []string {
		var all []string
		for _, c := range causes {
			all = append(all, c.Field+": "+c.Message)
		}
		return sorted(all)
	}
	return slices.EqualFunc(text(want.Causes), text(got.Causes), matches)
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// compareObjects compares first what the client and the policies decide, then what the server itself keeps.
func compareObjects(to []Difference, step int, want, got json.RawMessage) []Difference {
	w, err := decode(want)
	if err != nil {
		return append(to, Difference{step, Object, "a recorded JSON value", err.Error()})
	}
	if got == nil {
		return append(to, Difference{step, Object, string(want), "no object"})
	}
	g, err := decode(got)
	if err != nil {
		return append(to, Difference{step, Object, string(want), err.Error()})
	}
	withoutUnrecorded(g)
	wKept, gKept := takeMetadata(w), takeMetadata(g)
	if path, ok := equal(w, g, ""); !ok {
		to = append(to, Difference{step, Object, at(path) + text(w), text(g)})
	}
	if path, ok := equal(wKept, gKept, ""); !ok {
		to = append(to, Difference{step, Metadata, at(path) + text(wKept), text(gKept)})
	}
	return to
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return "(at " + strings.TrimPrefix(path, ".") + ") "
}

// withoutUnrecorded drops the metadata that recorded objects lack because it differs from run to run.
func withoutUnrecorded(object any) {
	for _, metadata := range metadataOf(object) {
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
			"managedFields"} {
			delete(metadata, key)
		}
	}
}

// takeMetadata removes the metadata that the server keeps itself from an object, or a list and its items, and returns
// what it removed, in order.
func takeMetadata(object any) any {
	var kept []any
	for _, metadata := range metadataOf(object) {
		taken := map[string]any{}
		for _, key := range []string{"generation", "deletionGracePeriodSeconds", "continue", "remainingItemCount"} {
			if v, ok := metadata[key]; ok {
				taken[key] = v
				delete(metadata, key)
			}
		}
		kept = append(kept, taken)
	}
	return kept
}

// metadataOf returns the metadata of an object, or of a list or table and what it holds.
func metadataOf(object any) []map[string]any {
	root, _ := object.(map[string]any)
	var all []map[string]any
	if m, ok := root["metadata"].(map[string]any); ok {
		all = append(all, m)
	}
	kind, _ := root["kind"].(string)
	if items, ok := root["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		for _, item := range items {
			all = append(all, metadataOf(item)...)
		}
	}
	if rows, ok := root["rows"].([]any); ok && kind == "Table" {
		for _, row := range rows {
			if row, ok := row.(map[string]any); ok {
				all = append(all, metadataOf(row["object"])...)
			}
		}
	}
	return all
}

func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is data after the JSON value")
	}
	return v, nil
}

// equal reports whether two decoded values are the same, and if not, the path of the first
// difference.
func equal(want, got any, path string) (string, bool) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return path, false
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			v, ok := g[key]
			if !ok {
				return path + "." + key, false
			}
			if p, ok := equal(w[key], v, path+"."+key); !ok {
				return p, false
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[key]; !ok {
				return path + "." + key, false
			}
		}
		return "", true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return path, false
		}
		for i := range w {
			if p, ok := equal(w[i], g[i], fmt.Sprintf("%s[%d]", path, i)); !ok {
				return p, false
			}
		}
		return "", true
	case string:
		g, ok := got.(string)
		return path, ok && matches(w, g)
	case json.Number:
		g, ok := got.(json.Number)
		return path, ok && sameNumber(string(w), string(g))
	}
	return path, want == got
}

// sameNumber compares numbers exactly, however they are spelled.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	// Exact arithmetic on a number like 1e999999999 would not end.
	const longest = 400
	if len(a) > longest || len(b) > longest || hugeExponent(a) || hugeExponent(b) {
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}

func hugeExponent(number string) bool {
	i := strings.IndexAny(number, "eE")
	return i >= 0 && len(strings.TrimLeft(number[i+1:], "+-0")) > 4
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
