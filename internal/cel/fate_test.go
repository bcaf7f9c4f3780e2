package cel

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/outcome"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// fateType has objects that know no other members than the ones that their schema names, but for `open`.
func fateType(t testing.TB) *ObjectType {
	t.Helper()
	text, whole, flag := *spec.StringProperty(), *spec.Int64Property(), *spec.BoolProperty()
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
	}
	open := object(map[string]spec.Schema{"known": text})
	open.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	parts := *spec.ArrayProperty(new(object(map[string]spec.Schema{"weight": whole})))
	root := object(map[string]spec.Schema{"spec": object(map[string]spec.Schema{
		"size": whole, "name": text, "on": flag, "when": *spec.DateTimeProperty(), "ratio": *spec.Float64Property(),
		"tags": *spec.ArrayProperty(&text), "labels": *spec.MapProperty(&text), "parts": parts, "open": open,
	})})
	typ := NewObjectType("Widget", func() *spec.Schema { return &root }, true)
	if typ == nil {
		t.Fatal("the schema gives no type")
	}
	return typ
}

// TestTypesMadeAgain: types that the collector has freed are made again, and mean the same to checks.
func TestTypesMadeAgain(t *testing.T) {
	of, kept := fateType(t), fateType(t).Keep()
	schema := of.JSONSchema()
	for range 10 {
		if runtime.GC(); of.fields.Value() == nil {
			break
		}
	}
	if of.fields.Value() != nil || kept.fields.Value() == nil {
		t.Fatal("types are freed if they are kept, or are kept if they are not")
	}
	checker, err := NewTypeChecker(TypedVariables{Object: of})
	if err != nil {
		t.Fatal(err)
	}
	if fate, _ := checker.Fate(Parse("object.spec.none < 5")); fate != outcome.AlwaysErrs || !of.Lacks(".spec.none") ||
		of.Lacks(".spec.size") {
		t.Error("a field that does not exist is not known to")
	}
	if again := of.JSONSchema(); !reflect.DeepEqual(schema, again) {
		t.Errorf("the schema is\n%v\nand then\n%v", schema, again)
	}
}

// TestFate: an expression that fails for every object is known to, and no other one is.
func TestFate(t *testing.T) {
	checker, err := NewTypeChecker(TypedVariables{Object: fateType(t)})
	if err != nil {
		t.Fatal(err)
	}
	for name, expression := range map[string]string{"size": "object.spec.size", "broken": "object.spec.none",
		"guarded": "has(object.spec.none) ? object.spec.none : 1"} {
		_ = checker.Variable(name, Parse(expression)) // what is wrong with it is in its fate
	}
	const fails, isTrue, isFalse, open = "fails", "true", "false", "open"
	for expression, want := range map[string]string{
		"object.spec.none < 5":                                           fails,
		"object.none == 1":                                               fails,
		"object.metadata.nome == 'a'":                                    fails,
		"object.spec.none.deeper == 1":                                   fails,
		"object.spec.parts[0].none == 1":                                 fails,
		"object.spec.size < '5'":                                         fails,
		"object.spec.size + 'a' == 'b'":                                  fails,
		"object.spec.size.startsWith('a')":                               fails,
		"object.spec.name.startsWith(5)":                                 fails,
		"!object.spec.size":                                              fails,
		"object.spec.tags < 5":                                           fails,
		"object.spec.size / 0 == 1":                                      fails,
		"object.spec.size % 0 == 1":                                      fails,
		"[1, 2][2] == object.spec.size":                                  fails,
		"[1, 2][-1] == object.spec.size":                                 fails,
		"object.spec.none in ['a']":                                      fails,
		"object.spec.none.all(x, x == 1)":                                fails,
		"variables.broken == 1":                                          fails,
		"object.spec.none == 1 && object.spec.none == 2":                 fails,
		"true && object.spec.none == 1":                                  fails,
		"object.spec.none == 1 || false":                                 fails,
		"object.spec.on ? object.spec.none == 1 : object.spec.gone == 1": fails,
		"size(object.spec.none) > 0":                                     fails,
		"object.spec.none.orValue(1) == 1":                               fails,
		"has(object.spec.none.deeper)":                                   fails,
		"{'a': object.spec.none} == {}":                                  fails,
		"[object.spec.none] == []":                                       fails,
		"has(object.spec.none)":                                          isFalse,
		"!has(object.spec.none)":                                         isTrue,
		"!has(object.spec.none) || object.spec.none < 5":                 isTrue,
		"has(object.spec.none) && object.spec.none < 5":                  isFalse,
		"has(object.spec.none) ? object.spec.none < 5 : true":            isTrue,
		"object.spec.none == 1 || true":                                  isTrue,
		"object.spec.none == 1 || object.spec.on":                        open,
		"object.spec.on && object.spec.none == 1":                        open,
		"object.spec.on ? object.spec.none == 1 : true":                  open,
		"object.?spec.?none.hasValue()":                                  open,
		"object.spec.?none.orValue(1) == 1":                              open,
		"object.spec.name.orValue(object.spec.none) == 1":                open,
		"object.spec.tags.all(t, t == object.spec.none)":                 open,
		"object.spec.labels.none == 'a'":                                 open,
		"object.spec.labels['none'] == 'a'":                              open,
		"object.spec.open.none == 'a'":                                   open,
		"object.spec['none'] == 1":                                       open,
		"oldObject.spec.none == 1":                                       open,
		"object.spec.when < '2020'":                                      open,
		"object.spec.ratio + 1 > 2":                                      open,
		"object.spec.size == 'a'":                                        open,
		"object.spec.size / 1 == 1":                                      open,
		"object.spec.size / 0.5 > 1.0":                                   open,
		"[1, 2][1] == object.spec.size":                                  open,
		"variables.size < 5":                                             open,
		"variables.guarded == 1":                                         open,
		"dyn(object).none == 1":                                          open,
		"[1, 2].exists(object, object.none == 1)":                        open,
		"object == null || object.spec.none == 1":                        open,
	} {
		fate, err := checker.Fate(Parse(expression))
		got := map[outcome.Fate]string{outcome.AnyFate: open, outcome.AlwaysErrs: fails, outcome.AlwaysTrue: isTrue,
			outcome.AlwaysFalse: isFalse}[fate]
		if got != want || (err != nil) != (got == fails) {
			t.Errorf("%s: got %s (%v), want %s", expression, got, err, want)
		}
		if err != nil && !strings.HasPrefix(Prefixed(err, "fails: "), "ERROR: <input>:1:") {
			t.Errorf("%s: the error has no place: %s", expression, Prefixed(err, "fails: "))
		}
	}
}
