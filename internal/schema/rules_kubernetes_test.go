package schema_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// ruledSpec has rules at every level, in everything that correlates a value with the one before it, and in what does
// not.
const ruledSpec = `{type: object, x-kubernetes-validations: [
		{rule: "!has(self.size) || self.size < 3", message: root size, fieldPath: .size},
		{rule: "!has(self.items) || self.items.all(i, i.num < 3)", message: root items, fieldPath: ".items", reason: FieldValueForbidden},
		{rule: "!has(oldSelf.size) || !has(self.size) || self.size >= oldSelf.size", message: root transition},
		{rule: "!oldSelf.hasValue() || !has(oldSelf.value().mode) || has(self.mode)", message: root optional, optionalOldSelf: true},
		{rule: "!has(self.any) || !has(self.mode)", messageExpression: "'any with ' + self.mode", message: any, fieldPath: ".labels['x']", reason: FieldValueDuplicate}],
	properties: {
	size: {type: integer, x-kubernetes-validations: [{rule: self != 2, message: size two, reason: FieldValueDuplicate}, {rule: "self == oldSelf || oldSelf < 2", message: size transition},
		{rule: "10 / self > 1", message: size division, messageExpression: "'tenth of ' + string(self)"}]},
	mode: {type: string, nullable: true, x-kubernetes-validations: [{rule: "self != 'a'", messageExpression: "self + string(1 / 0)", message: mode}, {rule: "self != 'b'", messageExpression: "'mode ' + self", reason: FieldValueRequired},
		{rule: "self == oldSelf.orValue('c')", optionalOldSelf: true, messageExpression: "''", message: mode optional}, {rule: "self != 'c'", messageExpression: "self + '\\n' + self", message: mode c}]},
	items: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], x-kubernetes-validations: [{rule: size(self) < 3, message: items size}, {rule: size(self) >= size(oldSelf), message: items transition}],
		items: {type: object, required: [k], x-kubernetes-validations: [{rule: "!has(self.num) || self.num != 1", message: item n, fieldPath: .num}, {rule: "!has(self.num) || !has(oldSelf.num) || self.num >= oldSelf.num", message: item transition}],
			properties: {k: {type: string}, num: {type: integer, x-kubernetes-validations: [{rule: self != 2, message: n two}, {rule: "self >= oldSelf", message: n transition}]},
				labels: {type: object, additionalProperties: {type: string, x-kubernetes-validations: [{rule: "self != 'a'", message: item label}]}}}}},
	two: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, num],
		items: {type: object, required: [k, num], properties: {k: {type: string}, num: {type: integer}, v: {type: string, x-kubernetes-validations: [{rule: "self == oldSelf", message: two transition}, {rule: "self != 'b'", message: two v}]}}}},
	atoms: {type: array, x-kubernetes-list-type: atomic, x-kubernetes-validations: [{rule: "self.all(x, x != 'a')", message: atoms}], items: {type: string, x-kubernetes-validations: [{rule: "self != 'b'", message: atom}]}},
	set: {type: array, x-kubernetes-list-type: set, x-kubernetes-validations: [{rule: "oldSelf.all(x, x in self)", message: set transition}, {rule: "!('a' in self)", message: set}], items: {type: string, x-kubernetes-validations: [{rule: "self != 'b'", message: set item}]}},
	labels: {type: object, additionalProperties: {type: string, x-kubernetes-validations: [{rule: "self != 'a'", message: label}, {rule: "self == oldSelf", message: label transition}]},
		x-kubernetes-validations: [{rule: "self.all(k, self[k] != 'b')", message: labels}]},
	atomicMap: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string, x-kubernetes-validations: [{rule: "self != 'a'", message: atomic label}]},
		x-kubernetes-validations: [{rule: "self.all(k, self[k] != 'b')", message: atomic labels}, {rule: "size(self) >= size(oldSelf)", message: atomic labels transition}]},
	atomicStruct: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string, x-kubernetes-validations: [{rule: "self != 'a'", message: atomic member}]}, num: {type: integer}}},
	nested: {type: object, properties: {deep: {type: object, properties: {num: {type: integer, x-kubernetes-validations: [{rule: self < 3, message: deep n, reason: FieldValueInvalid}]}}}}},
	any: {x-kubernetes-int-or-string: true, x-kubernetes-validations: [{rule: "type(self) == int ? self < 3 : self != 'a'", message: any}, {rule: self == oldSelf, message: any transition}]},
	embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-validations: [{rule: "self.metadata.name != 'a'", message: embedded}], properties: {spec: {type: object, properties: {num: {type: integer, x-kubernetes-validations: [{rule: self != 2, message: embedded n}]}}}}}
	}}`

// TestRulesLikeKubernetes: CRD rules at every level, with all that goes with them, on creates and updates, have the
// failures and the warnings that they have in Kubernetes, to the letter.
func TestRulesLikeKubernetes(t *testing.T) {
	v1 := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(`{type: object, properties: {spec: `+ruledSpec+`}}`), v1); err != nil {
		t.Fatal(err)
	}
	s, _, errs := schema.Compile(v1, schema.Options{Resource: true})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, internal,
		nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	kube := schemacel.NewValidator(structural, true, celconfig.PerCallLimit)
	r := rand.New(rand.NewPCG(7, 8))
	var failures, warnings int
	rounds := testutil.Amount(4000, 800)
	for range rounds {
		spec := ruledObject(r)
		objects := []map[string]any{nil, spec, changed(r, spec).(map[string]any), ruledObject(r)}
		for _, old := range objects {
			f, w := compareRules(t, s, kube, structural, spec, old)
			failures, warnings = failures+f, warnings+w
		}
	}
	t.Logf("%d failures and %d warnings", failures, warnings)
	if failures < rounds*5/2 || warnings < rounds/2 {
		t.Errorf("too few to say anything")
	}
}

// recorder takes warnings as an API server's answer does.
type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

func compareRules(t *testing.T, s *schema.Schema, kube *schemacel.Validator, structural *structuralschema.Structural,
	spec, old map[string]any) (failures, warnings int) {
	t.Helper()
	whole := func(spec map[string]any) (map[string]any, *document.Document) {
		object := map[string]any{"apiVersion": "schema.example/v1", "kind": "Object",
			"metadata": map[string]any{"name": "one"}, "spec": spec}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return object, parsed(t, string(raw))
	}
	object, d := whole(spec)
	var before any
	var beforeNode document.Node
	var options []schemacel.Option
	if old != nil {
		oldObject, oldDocument := whole(old)
		before, beforeNode = oldObject, oldDocument.Root()
		options = append(options,
			schemacel.WithRatcheting(common.NewCorrelatedObject(object, oldObject,
				&model.Structural{Structural: structural})))
	}
	var recorded recorder
	found, _ := kube.Validate(warning.WithWarningRecorder(context.Background(), &recorded), nil, structural, object,
		before, celconfig.RuntimeCELCostBudget, options...)
	var want []string
	for _, err := range found {
		want = append(want, err.Error())
	}
	frame := cel.NewFrame(t.Context())
	defer frame.Release()
	result := s.Validate(frame, d.Root(), beforeNode)
	got := texts(result)
	for _, list := range [][]string{got, want, result.Warnings, recorded} {
		slices.Sort(list)
	}
	if !slices.Equal(got, want) || !slices.Equal(result.Warnings, recorded) {
		a, _ := json.Marshal(spec)
		b, _ := json.Marshal(old)
		t.Fatalf("object %s\nold    %s\ngot  %s\nwant %s\nwarnings: got  %s\nwarnings: want %s", a, b,
			strings.Join(got, "\n     "), strings.Join(want, "\n     "), strings.Join(result.Warnings, "\n     "),
			strings.Join(recorded, "\n     "))
	}
	return len(got), len(result.Warnings)
}

// ruledObject is an object that the schema allows.
func ruledObject(r *rand.Rand) map[string]any {
	spec := map[string]any{}
	letter := func() string { return string(rune('a' + r.IntN(4))) }
	maybe := func(name string, value func() any) {
		if r.IntN(3) > 0 {
			spec[name] = value()
		}
	}
	several := func(item func(i int) any) []any {
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = item(i)
		}
		return list
	}
	strings := func() any {
		m := map[string]any{}
		for range r.IntN(3) {
			m[letter()] = letter()
		}
		return m
	}
	number := func() any { return int64(r.IntN(5)) }
	maybe("size", number)
	maybe("mode", func() any {
		if r.IntN(6) == 0 {
			return nil
		}
		return letter()
	})
	maybe("items", func() any {
		return several(func(i int) any {
			item := map[string]any{"k": fmt.Sprint(i), "num": number()}
			if r.IntN(3) == 0 {
				item["labels"] = strings()
			}
			return item
		})
	})
	maybe("two", func() any {
		return several(func(i int) any { return map[string]any{"k": letter(), "num": int64(i), "v": letter()} })
	})
	maybe("atoms", func() any { return several(func(int) any { return letter() }) })
	maybe("set", func() any { return several(func(i int) any { return string(rune('a' + i)) }) })
	maybe("labels", strings)
	maybe("atomicMap", strings)
	maybe("atomicStruct", func() any { return map[string]any{"a": letter(), "num": number()} })
	maybe("nested", func() any { return map[string]any{"deep": map[string]any{"num": number()}} })
	maybe("any", func() any {
		if r.IntN(2) == 0 {
			return letter()
		}
		return number()
	})
	maybe("embedded", func() any {
		return map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": letter()},
			"spec": map[string]any{"num": number()}}
	})
	return spec
}

// changed is a value with something changed somewhere.
func changed(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			out[name] = member
		}
		for name := range out {
			switch {
			case name == "k" || name == "apiVersion" || name == "kind" || name == "name":
			case r.IntN(3) == 0:
				out[name] = changed(r, out[name])
			case r.IntN(20) == 0 && name != "num":
				delete(out, name)
			}
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			if r.IntN(3) == 0 {
				out[i] = changed(r, out[i])
			}
		}
		if len(out) > 1 && r.IntN(3) == 0 {
			r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		}
		if len(out) > 0 && r.IntN(4) == 0 {
			out = out[1:]
		}
		return out
	case int64:
		return int64(r.IntN(5))
	case string:
		return string(rune('a' + r.IntN(4)))
	}
	return v
}
