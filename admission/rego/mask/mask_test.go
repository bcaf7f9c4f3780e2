package mask_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission/decisions"
	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/admission/rego/bundle/bundletest"
	"github.com/admission-gateway/gateway/admission/rego/mask"
)

const event = `{"labels":{"id":"x"},"decision_id":"d","path":"tickets/deny","input":{"review":{"object":{"a":{"b":1},"list":[[1,2],3],"n":12345678901234567890,"a b":1},` +
	`"name":"<n>"}},"result":["no"],"erased":["/input/y"],"metrics":{"t":1},"custom":{"policy":"p"}}`

func compile(t *testing.T, module string, usable func() error) (*mask.Rules, error) {
	t.Helper()
	b, err := bundle.Read(bundletest.Archive(t, map[string]string{"log.rego": "package system.log\n\n" + module,
		"other/data.json": `{"x": 1}`}),
		bundle.Options{Name: "b", MaxBytes: 1 << 20, MaxFiles: 10})
	if err != nil {
		t.Fatal(err)
	}
	return mask.Compile(b, usable)
}

func TestApply(t *testing.T) {
	for _, test := range []struct{ name, module, want, err string }{
		{name: "nothing", module: `mask contains "/input/x" if false`, want: event},
		{name: "undefined", module: `mask := ["/input"] if false`, want: event},
		{name: "erase", module: `mask contains "/input/review/object/a/b"
			mask contains "/input/review/object/list/0/1"
			mask contains "/input/review/missing/z"
			mask contains {"op": "remove", "path": "/input/review/object/list/1"}`,
			want: `{"labels":{"id":"x"},"decision_id":"d","path":"tickets/deny","input":{"review":{"object":{"a":{},"list":[[1]],"n":12345678901234567890,"a b":1},` +
				`"name":"<n>"}},"result":["no"],"erased":["/input/y","/input/review/object/a/b","/input/review/object/list/0/1","/input/review/object/list/1"],"metrics":{"t":1},"custom":{"policy":"p"}}`},
		{name: "whole", module: `mask contains "/input"
			mask contains "/result"
			mask contains "/nd_builtin_cache"`,
			want: `{"labels":{"id":"x"},"decision_id":"d","path":"tickets/deny","erased":["/input/y","/input","/result"],"metrics":{"t":1},"custom":{"policy":"p"}}`},
		{name: "upsert", module: `mask := [
				{"op": "upsert", "path": "/input/review/object/a/b", "value": "**"},
				{"op": "upsert", "path": "/input/review/new/deep", "value": {"x": [1]}},
				{"op": "upsert", "path": "/input/review/object/list/0/1", "value": null},
				{"op": "upsert", "path": "/input/review/object/list/7", "value": 1},
				{"op": "upsert", "path": "/input/review/name/x", "value": 1},
				{"op": "upsert", "path": "/result", "value": "masked"},
			] if input.custom.policy == "p"`,
			want: `{"labels":{"id":"x"},"decision_id":"d","path":"tickets/deny","input":{"review":{"object":{"a":{"b":"**"},"list":[[1,null],3],"n":12345678901234567890,"a b":1},` +
				`"name":"<n>","new":{"deep":{"x":[1]}}}},"result":"masked","erased":["/input/y"],"masked":["/input/review/object/a/b","/input/review/new/deep","/input/review/object/list/0/1","/result"],` +
				`"metrics":{"t":1},"custom":{"policy":"p"}}`},
		{name: "escaped, as with OPA", module: `mask contains "/input/review/object/a b"`, want: event},
		{name: "dropped", module: `drop if input.path == "tickets/deny"`},
		{name: "not dropped", module: `drop if input.path == "tickets/warn"`, want: event},
		{name: "false", module: `drop := false`, want: event},
		{name: "not a boolean", module: `drop := "yes"`, want: event},
		{name: "dropped before it is masked", module: "drop := true\nmask := 1"},
		{name: "no list", module: `mask := "/input"`, err: "the value of the rule mask must be a set or a list"},
		{name: "no item", module: `mask contains 1`, err: "an item of the rule mask must be a path or an object"},
		{name: "no path", module: `mask contains {"op": "remove"}`, err: "a path of the rule mask must begin with '/'"},
		{name: "relative", module: `mask contains "input"`, err: "a path of the rule mask must begin with '/'"},
		{name: "no op", module: `mask contains {"path": "/input"}`,
			err: "the member 'op' of an item of the rule mask must be 'remove' or 'upsert'"},
		{name: "another member", module: `mask contains "/labels"`,
			err: "a path of the rule mask must begin with one of input, result, nd_builtin_cache"},
		{name: "one is wrong", module: "mask contains \"/input\"\nmask contains \"/labels\"",
			err: "a path of the rule mask must begin with one of input, result, nd_builtin_cache"},
		{name: "fails", module: `mask contains "/input" if to_number("x") > 1`, err: `data.system.log.mask: log.rego:3:27: eval_builtin_error: to_number: parsing "x": invalid syntax`},
		{name: "drop fails", module: `drop if to_number("x") > 1`, err: `data.system.log.drop: log.rego:3:9: eval_builtin_error: to_number: parsing "x": invalid syntax`},
	} {
		rules, err := compile(t, test.module, nil)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var f mask.Filter
		f.Set(rules)
		got, err := f.Apply(context.Background(), []byte(event))
		if problem := text(err); problem != test.err || !isSame(t, string(got), test.want) {
			t.Errorf("%s: got %s, %s\nwant %s, %s", test.name, got, problem, test.want, test.err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// isSame reports whether two events are the same, but for the order of members.
func isSame(t *testing.T, a, b string) bool {
	t.Helper()
	if a == "" || b == "" {
		return a == b
	}
	var x, y any
	for text, to := range map[string]*any{a: &x, b: &y} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(to); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if a == b {
		return true
	}
	return reflect.DeepEqual(x, y)
}

// TestNotReady: without rules that may be used nothing is shown.
func TestNotReady(t *testing.T) {
	var f mask.Filter
	if got, err := f.Apply(context.Background(), []byte(event)); got != nil || !errors.Is(err, decisions.ErrNotReady) {
		t.Errorf("without rules: %s, %v", got, err)
	}
	stale := errors.New("stale")
	rules, err := compile(t, `mask contains "/input"`, func() error { return stale })
	if err != nil {
		t.Fatal(err)
	}
	f.Set(rules)
	if got, err := f.Apply(context.Background(), []byte(event)); got != nil || !errors.Is(err, decisions.ErrNotReady) ||
		!errors.Is(err, stale) {
		t.Errorf("with stale rules: %s, %v", got, err)
	}
	stale = nil
	if got, err := f.Apply(context.Background(), []byte(event)); err != nil || isSame(t, string(got), event) {
		t.Errorf("with rules: %s, %v", got, err)
	}
}

func TestCompile(t *testing.T) {
	for module, want := range map[string]string{
		"masks := 1":            "no module defines data.system.log.mask or data.system.log.drop, which decision logs need",
		"mask contains x":       "bundle:b/log.rego:3:15: rego_unsafe_var_error: var x is unsafe",
		"drop if http.send({})": "bundle:b/log.rego:3:9: rego_type_error: must not call 'http.send': ",
	} {
		if _, err := compile(t, module, nil); err == nil || len(err.Error()) < len(want) ||
			err.Error()[:len(want)] != want {
			t.Errorf("%s: got %v, want %s", module, err, want)
		}
	}
}
