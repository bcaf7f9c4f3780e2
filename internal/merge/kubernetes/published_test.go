package kubernetes

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestPublished: the schemas of all kinds agree with the Go type of each field.
func TestPublished(t *testing.T) {
	compared := 0
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		s := Published(kind)
		if s == nil {
			continue
		}
		compared++
		for _, problem := range differences(goType, *s, kind.String(), nil) {
			t.Error(problem)
		}
	}
	if compared < 120 {
		t.Errorf("only %d kinds", compared)
	}
}

// differences compares a schema with a Go type.
func differences(g reflect.Type, s spec.Schema, at string, around []reflect.Type) []string {
	if g.Kind() == reflect.Pointer {
		g = g.Elem()
	}
	want, format := "", ""
	switch g {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		want, format = "string", "date-time"
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](),
		reflect.TypeFor[runtime.RawExtension]():
		format = "int-or-string"
	case reflect.TypeFor[metav1.FieldsV1]():
		want = "object"
	case reflect.TypeFor[[]byte]():
		want, format = "string", "byte"
	default:
		switch g.Kind() {
		case reflect.String:
			want = "string"
		case reflect.Bool:
			want = "boolean"
		case reflect.Int, reflect.Int32, reflect.Int64:
			want, format = "integer", "int64"
		case reflect.Slice:
			want = "array"
		case reflect.Map, reflect.Struct:
			want = "object"
		default:
			return []string{fmt.Sprintf("%s: a Go type that is new here: %v", at, g)}
		}
	}
	if got := strings.Join(s.Type, ","); got != want || s.Format != format {
		return []string{fmt.Sprintf("%s: is %q %q, want %q %q (%v)", at, got, s.Format, want, format, g)}
	}
	if format == "int-or-string" || format == "date-time" || g == reflect.TypeFor[metav1.FieldsV1]() ||
		slices.Contains(around, g) {
		return nil
	}
	around = append(slices.Clip(around), g)
	switch want {
	case "array":
		return differences(g.Elem(), *s.Items.Schema, at+"[]", around)
	case "object":
		if g.Kind() == reflect.Map {
			if s.AdditionalProperties == nil {
				return []string{at + ": is no map"}
			}
			return differences(g.Elem(), *s.AdditionalProperties.Schema, at+"{}", around)
		}
		return fieldDifferences(g, s, at, around)
	}
	return nil
}

func fieldDifferences(g reflect.Type, s spec.Schema, at string, around []reflect.Type) (found []string) {
	for f := range fieldsOf(g) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		property, ok := s.Properties[name]
		if !ok {
			found = append(found, fmt.Sprintf("%s.%s: is not there", at, name))
			continue
		}
		found = append(found, differences(f.Type, property, at+"."+name, around)...)
	}
	return found
}

// fieldsOf returns the fields of a struct that JSON has, with the fields of structs in line.
func fieldsOf(g reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for i := range g.NumField() {
			f := g.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && name != "-" {
				if !yield(f) {
					return
				}
				continue
			}
			if f.Anonymous && name == "" {
				for inner := range fieldsOf(f.Type) {
					if !yield(inner) {
						return
					}
				}
			}
		}
	}
}
