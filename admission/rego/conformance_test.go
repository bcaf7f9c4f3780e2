package rego

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/test/cases"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// minPlans is how many of OPA's cases have a plan, at least.
const minPlans = 3800

// TestConformance plays OPA's own cases, in both versions of the language, through our evaluation:
// by plans, and by OPA's evaluator. They are read from OPA's module.
func TestConformance(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/open-policy-agent/opa").Output()
	if err != nil {
		t.Fatal(err)
	}
	plans := 0
	for _, version := range []string{"v0", "v1"} {
		set, err := cases.Load(filepath.Join(strings.TrimSpace(string(dir)), "v1", "test", "cases", "testdata",
			version))
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Cases) < 1000 {
			t.Fatalf("%s: there are only %d cases", version, len(set.Cases))
		}
		for _, c := range testutil.Sampled(3, set.Cases) {
			t.Run(version+"/"+c.Note, func(t *testing.T) {
				q, in := conformanceQuery(t, version == "v0", &c)
				conform(t, q, in, &c)
				if q.native == nil {
					return
				}
				plans++
				likeOPA(t, q, in)
				conform(t, byOPA(q), in, &c)
			})
		}
	}
	if least := testutil.Amount(minPlans, minPlans/4); plans < least {
		t.Errorf("%d cases have a plan, want %d", plans, least)
	}
}

// conformanceQuery compiles a case.
func conformanceQuery(t *testing.T, v0 bool, c *cases.TestCase) (*Query, *Input) {
	text := strings.Join(c.Modules, "\n") + c.Query
	for name := range builtin.Refusals() {
		if strings.Contains(text, name) {
			t.Skipf("uses %s, which is refused", name)
		}
	}
	if strings.Contains(text, "test.sleep") {
		t.Skip("uses a function of OPA's tests")
	}
	for name, value := range c.Env {
		t.Setenv(name, value)
	}
	o := Options{V0: v0}
	if c.Data != nil {
		o.Data = ofGo(t, *c.Data)
	}
	modules := make([]Module, len(c.Modules))
	for i, m := range c.Modules {
		modules[i] = Module{File: fmt.Sprintf("test-%d.rego", i), Source: []byte(m)}
	}
	if len(modules) == 0 {
		modules = []Module{{File: "test.rego", Source: []byte("package nothing")}}
	}
	p, err := Compile(o, modules...)
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.prepare(c.Query, c.Query)
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{}
	switch {
	case c.InputTerm != nil:
		in.Root = Value{term: ast.MustParseTerm(*c.InputTerm)}
	case c.Input != nil:
		in.Root = read(t, []byte(raw(t, *c.Input)))
	}
	return q, in
}

// conform plays a case.
func conform(t *testing.T, q *Query, in *Input, c *cases.TestCase) {
	var found topdown.QueryResultSet
	_, err := q.run(context.Background(), in, func(s solution) error {
		r := byName(s)
		found = append(found, maps.Clone(r))
		return nil
	})
	checkConformance(t, c, found, err)
}

// ofGo makes a value as a request's document is made one.
func ofGo(t *testing.T, v any) Value {
	return parsed(t, []byte(raw(t, v)))
}

func checkConformance(t *testing.T, c *cases.TestCase, found topdown.QueryResultSet, err error) {
	switch {
	case c.WantError != nil || c.WantErrorCode != nil:
		var failed Error
		switch {
		case err == nil && found == nil && c.StrictError:
			t.Errorf("no error, want %v", c.WantErrorCode)
		case err == nil:
			t.Errorf("no error, want %v", *c.WantErrorCode)
		case c.WantErrorCode != nil && errors.As(err, &failed) && !strings.HasPrefix(failed.Message, *c.WantErrorCode):
			t.Errorf("got %v, want %s", err, *c.WantErrorCode)
		case c.WantError != nil &&
			!strings.Contains(err.Error(), strings.TrimPrefix(worded("f: "+stripCode(*c.WantError)), "f: ")):
			t.Errorf("got %v, want %s", err, *c.WantError)
		}
	case err != nil:
		var failed Error
		if errors.As(err, &failed) && (strings.HasPrefix(failed.Message, topdown.BuiltinErr) ||
			strings.HasPrefix(failed.Message, topdown.TypeErr)) {
			return // an error of a function, which OPA's cases let pass, is an error here
		}
		t.Errorf("failed: %v", err)
	case c.WantDefined != nil:
		if (len(found) > 0) != *c.WantDefined {
			t.Errorf("defined: %v, want %v", len(found) > 0, *c.WantDefined)
		}
	case c.WantResult != nil:
		checkResult(t, c, found)
	}
}

func stripCode(message string) string {
	if _, rest, ok := strings.Cut(message, ": "); ok {
		return rest
	}
	return message
}

func checkResult(t *testing.T, c *cases.TestCase, found topdown.QueryResultSet) {
	got := make([]map[string]any, 0, len(found))
	for _, r := range found {
		one := map[string]any{}
		for name, term := range r {
			if c.IgnoreGeneratedVars && name.IsGenerated() {
				continue
			}
			text, err := Value{term: term}.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := util.UnmarshalJSON(text, &v); err != nil {
				t.Fatal(err)
			}
			if list, ok := v.([]any); ok && c.SortBindings {
				slices.SortFunc(list, util.Compare)
			}
			one[string(name)] = v
		}
		got = append(got, one)
	}
	want := *c.WantResult
	byText := func(a, b map[string]any) int { return util.Compare(any(a), any(b)) }
	slices.SortFunc(got, byText)
	want = slices.Clone(want)
	slices.SortFunc(want, byText)
	if util.Compare(anyOf(got), anyOf(want)) != 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func anyOf(rows []map[string]any) any {
	all := make([]any, len(rows))
	for i, r := range rows {
		all[i] = r
	}
	return all
}
