package mutate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
)

const widgetSchema = `
type: object
properties:
  spec:
    type: object
    properties:
      size: {type: integer}
      max: {type: integer, default: 100}
      color: {type: string}
      nick: {type: string, nullable: true}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      steps: {type: array, items: {type: string}}
      parts:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties: {name: {type: string}, weight: {type: integer, default: 5}, kind: {type: string}}
      box: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      labels: {type: object, additionalProperties: {type: string}}
      any: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// widgets are objects that policies are tried on.
var widgets = []string{
	`{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w1","namespace":"team-a"},"spec":{"size":5}}`,
	`{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w2","namespace":"team-a","labels":{"x":"y"}},"spec":{"size":1.5,"color":"red","nick":null,"tags":["a","b"],"steps":["s"],"parts":[{"name":"p","weight":2},{"name":"added","kind":"own"}],"box":{"a":"b"},"labels":{"k":"v"},"any":{"list":[1],"map":{"a":1}}}}`,
	`{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w3","namespace":"team-a","annotations":{"a":"b"}},"spec":{"size":"big","parts":[{"name":"p"},{"name":"p","weight":1}]}}`,
	`{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"w4","namespace":"team-a"}}`,
}

const apply, patch1 = "- patchType: ApplyConfiguration\n  applyConfiguration: {expression: ",
	"- patchType: JSONPatch\n  jsonPatch: {expression: "

// policyFiles are sets of policies, separated by lines of dashes, each bound to everything.
var policyFiles = []string{
	"mutations:\n" + apply + `"Object{spec: Object.spec{color: 'blue', parts: [Object.spec.parts{name: 'added', weight: 9}, Object.spec.parts{name: 'new'}]}}"}`,
	"mutations:\n" + apply + `"Object{metadata: Object.metadata{labels: {'by': 'policy'}, annotations: {'a': 'c'}, finalizers: ['example.com/f']}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{tags: ['b', 'c']}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{steps: ['t'], box: {'c': 'd'}}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{any: Object.spec.any{list: [2], map: Object.spec.any.map{b: 2}, more: dyn({'x': [1, 2]})}}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{nothing: 1}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{color: 5}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{color: optional.none(), nick: null}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{?color: object.spec.?nothing, ?nick: object.?spec.?color}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.wrong{color: 'red'}}"}`,
	"mutations:\n" + apply + `"Object{kind: 'Other', apiVersion: 'v2', metadata: Object.metadata{name: 'other'}}"}`,
	"mutations:\n" + apply + `"Object{}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{parts: object.spec.parts.map(p, Object.spec.parts{name: p.name + 'x', weight: 1})}}"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/color', value: 'green'}, JSONPatch{op: 'replace', path: '/spec/nothing', value: {'a': [1, 2]}}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'remove', path: '/spec/color'}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'test', path: '/spec/size', value: 5}, JSONPatch{op: 'replace', path: '/spec/size', value: 7}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/~'), value: string(object.spec.size)}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/parts/-', value: Object.spec.parts{name: 'z'}}, JSONPatch{op: 'move', from: '/spec/parts/0', path: '/spec/any'}, JSONPatch{op: 'copy', from: '/spec/none', path: '/spec/nick'}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/parts', value: [Object.spec.parts{name: 'z'}]}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'remove', path: '/kind'}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'replace', path: '', value: [1]}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/any', value: {'int': dyn(9007199254740991), 'f': dyn(2.5), 'b': dyn(true), 'n': dyn(null), 'ts': dyn(timestamp('2024-01-01T00:00:00Z')), 'by': dyn(b'abc')}}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'frob', path: '/spec'}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/color', value: object.spec.owner}]"}`,
	"failurePolicy: Ignore\nmutations:\n" + patch1 +
		`"[JSONPatch{op: 'add', path: '/spec/color', value: object.spec.owner}]"}`,
	// Each mutation stands for itself, and the others run if one fails.
	"failurePolicy: Ignore\nmutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/size', value: 1}]"}` + "\n" +
		patch1 + `"[JSONPatch{op: 'remove', path: '/spec/none'}]"}` + "\n" + patch1 +
		`"[JSONPatch{op: 'replace', path: '/spec/size', value: object.spec.size + 1}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'remove', path: '/spec/none'}]"}` + "\n" + apply +
		`"Object{spec: Object.spec{steps: []}}"}`,
	// Conditions, variables, the namespace and the request.
	"matchConditions: [{name: a, expression: \"object.metadata.name == 'w1'\"}]\nmutations:\n" + apply + `"Object{spec: Object.spec{color: 'match'}}"}`,
	"matchConditions: [{name: a, expression: \"object.spec.nothing == 1\"}]\nmutations:\n" + apply + `"Object{}"}`,
	"failurePolicy: Ignore\nmatchConditions: [{name: a, expression: \"object.spec.nothing == 1\"}]\nmutations:\n" + apply + `"Object{spec: Object.spec{color: 'no'}}"}`,
	"variables: [{name: c, expression: \"'n' + string(object.spec.size)\"}, {name: d, expression: variables.c + '!'}]\nmutations:\n" +
		apply + `"Object{spec: Object.spec{color: variables.d}}"}` + "\n" + patch1 +
		`"[JSONPatch{op: 'add', path: '/spec/size', value: 8}]"}` + "\n" + apply +
		`"Object{spec: Object.spec{nick: variables.c}}"}`,
	"mutations:\n" + apply + `"Object{spec: Object.spec{color: request.userInfo.username + request.namespace, nick: namespaceObject.metadata.labels.tier}}"}`,
	// What a policy matches is decided before any of them runs, its conditions when it runs.
	"mutations:\n" + apply + `"Object{metadata: Object.metadata{labels: {'x': 'y'}}}"}` + "\n---\nmatchConstraints: {objectSelector: {matchLabels: {x: 'y'}}}\nmutations:\n" + apply + `"Object{spec: Object.spec{color: 'sel'}}"}`,
	"mutations:\n" + apply + `"Object{metadata: Object.metadata{labels: {'x': 'y'}}}"}` + "\n---\nmatchConditions: [{name: a, expression: \"has(object.metadata.labels)\"}]\nmutations:\n" + apply + `"Object{spec: Object.spec{color: 'cond'}}"}`,
	// All failures are reported.
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'remove', path: '/x'}]"}` + "\n---\nmutations:\n" + apply +
		`"Object{spec: Object.spec{color: 'red'}}"}` + "\n---\nmutations:\n" + patch1 +
		`"[JSONPatch{op: 'remove', path: '/y'}]"}`,
	// Who runs again.
	"reinvocationPolicy: IfNeeded\nmutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/any', value: {'n': has(object.spec.any) && has(object.spec.any.n) ? object.spec.any.n + 1 : 1}}]"}`,
	"reinvocationPolicy: IfNeeded\nmutations:\n" + apply + `"Object{spec: Object.spec{?nick: object.?spec.?color}}"}` +
		"\n---\nmutations:\n" + apply + `"Object{spec: Object.spec{color: 'late'}}"}`,
	"reinvocationPolicy: Never\nmutations:\n" + apply + `"Object{spec: Object.spec{?nick: object.?spec.?color}}"}` +
		"\n---\nmutations:\n" + apply + `"Object{spec: Object.spec{color: 'late'}}"}`,
	"reinvocationPolicy: IfNeeded\nmatchConditions: [{name: a, expression: \"!has(object.spec) || !has(object.spec.color)\"}]\nmutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'n': 'x'}}]"}` +
		"\n---\nmutations:\n" + apply + `"Object{spec: Object.spec{color: 'late'}}"}`,
	"reinvocationPolicy: IfNeeded\nmutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/any', value: {'n': has(object.spec.any) && has(object.spec.any.n) ? object.spec.any.n + 1 : 1}}]"}` +
		"\n---\nreinvocationPolicy: IfNeeded\nmutations:\n" + patch1 +
		`"true ? [] : [JSONPatch{op: 'remove', path: '/x'}]"}`,
	"failurePolicy: Ignore\nreinvocationPolicy: IfNeeded\nmutations:\n" + patch1 +
		`"[JSONPatch{op: 'remove', path: '/x'}]"}`,
}

// values are tried in the fields of patches.
var values = []string{
	"'x'", "true", "2", "-5", "1.0", "1u", "null", "{}", "type(1)", "b'abc'", "duration('1h')", "duration('1.5s')",
	"timestamp('2024-01-01T00:00:00.120+02:00')", "quantity('1k')", "ip('1.2.3.4')",
	"optional.none()", "optional.of('x')", "optional.of(null)", "optional.of([[1]])", "optional.of(object.spec.any)",
	"[1]", "[null]", "[[1]]", "[{'a': 1}]", "{'a': {'b': 1}}", "{'a': [1]}", "{'a': null}", "[dyn(1u)]",
	"[optional.of(1)]", "[optional.none()]",
	"{'a': Object.spec.any{b: 1}}", "[Object.spec.any.v{b: [1]}]", "[Object.spec.any.v{b: null}]",
	"dyn([[1]]).map(x, x)", "dyn([1]) + [[2]]", "[1] + [2]", "[object.spec.tags + [['x']]]",
	"object.spec.any.list.filter(x, x > 0)",
	"object.spec.any", "[object.spec.any]", "object.spec.any.list", "{'x': object.spec.any.list}", "object.spec.tags",
	"object.spec.tags + ['x']", "object.spec.labels", "object.spec.nick", "[object.spec.nick]", "[object.spec]",
	"object.spec",
	"object.metadata", "object.spec.labels.transformMap(k, v, v + 'x')", "[[2, 1]].map(x, x.sort())",
	"['b', 'a', 'a'].distinct()",
}

// compiled compiles policies, each with its binding.
func compiled(t testing.TB, policies []*admissionv1.MutatingAdmissionPolicy) []admission.Mutator {
	t.Helper()
	var mutators []admission.Mutator
	for _, p := range policies {
		b, errs := CompileBinding(bindingOf(p))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		compiled, errs := Compiler{}.Compile(p, b)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		mutators = append(mutators, compiled)
	}
	return mutators
}

// widgetKind says what a gateway knows of widgets.
type widgetKind struct {
	schema *schema.Schema
	typ    *merge.Type
	object *document.Document
}

func (w *widgetKind) SetDefaults() error {
	defaults.Apply(w.object, w.schema)
	return nil
}

func (w *widgetKind) MergeType(kschema.GroupVersionResource, kschema.GroupVersionKind) *merge.Type {
	return w.typ
}

func (w *widgetKind) PatchLimits() document.Limits { return document.Limits{} }

// request is one about a widget.
func request(t testing.TB, props *apiextensionsv1.JSONSchemaProps, object, old string) *admission.Attributes {
	t.Helper()
	s, _, errs := schema.Compile(props, schema.Options{Resource: true, Namespaced: true})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	d := admissiontest.Parse(object)
	a := &admission.Attributes{
		Info: &resource.Info{
			Verb: resource.VerbCreate, IsResource: true, APIPrefix: "apis", Group: "lab.example.com", Version: "v1",
			Resource: "widgets", Namespace: "team-a",
		},
		Operation: admission.Create,
		User:      &identity.User{Name: "jane", Groups: []string{"dev"}},
		Object:    d,
		Lookup:    (&admissiontest.Lookup{}).Add("{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod}}}"),
		Frame:     cel.NewFrame(t.Context()),
		Schema:    &widgetKind{s, s.MergeType(), d},
	}
	if old != "" {
		a.Operation, a.Old = admission.Update, admissiontest.Parse(old)
		a.Info.Verb = resource.VerbUpdate
	}
	t.Cleanup(a.Frame.Release)
	return a
}

// admit runs policies on a widget.
func admit(t *testing.T, props *apiextensionsv1.JSONSchemaProps, object, old string,
	policies []*admissionv1.MutatingAdmissionPolicy) (string, error) {
	t.Helper()
	a := request(t, props, object, old)
	var r admission.Report
	if err := admission.NewChain(compiled(t, policies), nil).Mutate(context.Background(), a, &r); err != nil {
		return "", err
	}
	return string(a.Object.AppendTo(nil)), nil
}

// describe is an answer with its code, its message and the policies that failed.
func describe(err error) string {
	var answer *status.Error
	if !errors.As(err, &answer) {
		return err.Error()
	}
	s := &answer.ErrStatus
	text := fmt.Sprintf("%d %s", s.Code, s.Message)
	if s.Details != nil && len(s.Details.Causes) > 0 {
		var policies []string
		for _, c := range s.Details.Causes {
			_, name, _ := strings.Cut(c.Message, "policy '")
			name, _, _ = strings.Cut(name, "'")
			policies = append(policies, name)
		}
		text += fmt.Sprintf(" %v", policies)
	}
	return text
}
