package cel

import (
	"encoding/json"
	"reflect"
	"testing"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// FuzzDeclared: the type of a schema is the one that Kubernetes makes of it.
func FuzzDeclared(f *testing.F) {
	for _, text := range []string{
		`{"type": "object", "properties": {"spec": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "integer", "default": 1}}}}}}}}`,
		`{"type": "object", "additionalProperties": {"type": "array", "maxItems": 4, "items": {"type": "string", "format": "date-time"}}}`,
		`{"type": "object", "additionalProperties": true, "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "enum": ["a", "bc"]}}}}}`,
		`{"type": "object", "properties": {"e": {"type": "object", "x-kubernetes-embedded-resource": true}, "p": {"x-kubernetes-int-or-string": true}, "q": {"x-kubernetes-preserve-unknown-fields": true}}}`,
		`{"type": "array", "items": {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}}`, `{"type": "number"}`, `{}`,
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, resource bool) {
		var s spec.Schema
		if json.Unmarshal(text, &s) != nil {
			return
		}
		make := func(s common.Schema) (made *apiservercel.DeclType, panicked any) {
			defer func() { panicked = recover() }()
			return common.SchemaDeclType(s, resource), nil
		}
		got, gotPanic := make(declared(&s))
		want, wantPanic := make(&openapi.Schema{Schema: &s})
		if !reflect.DeepEqual(got, want) || (gotPanic == nil) != (wantPanic == nil) {
			t.Errorf("%s: the type is %v (%v), want %v (%v)", text, got, gotPanic, want, wantPanic)
		}
	})
}
