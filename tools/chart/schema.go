package main

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A schema is a JSON Schema.
type schema map[string]any

// A writer makes schemas of Go's types. Types of Kubernetes are written once, below $defs.
type writer struct{ defs schema }

// known are the types that are written in JSON by a method of their own.
var known = map[reflect.Type]schema{
	reflect.TypeFor[intstr.IntOrString](): {"type": []string{"integer", "string"}},
	reflect.TypeFor[resource.Quantity]():  {"type": []string{"number", "string"}},
	reflect.TypeFor[metav1.Time]():        {"type": "string"},
	reflect.TypeFor[metav1.FieldsV1]():    {"type": "object"},
}

// of returns the schema of a type, by the tags of the field that has it.
func (w writer) of(t reflect.Type, tags reflect.StructTag) schema {
	if s, ok := known[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem(), tags)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int32, reflect.Int64:
		return number("integer", tags)
	case reflect.Float64:
		return number("number", tags)
	case reflect.String:
		return text(tags)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string"} // base64
		}
		return schema{"type": "array", "items": w.of(t.Elem(), "")}
	case reflect.Map:
		return w.ofMap(t)
	case reflect.Struct:
		if strings.HasPrefix(t.PkgPath(), "k8s.io/") {
			return w.referTo(t, tags)
		}
		return w.object(t)
	case reflect.Interface:
		return schema{}
	}
	panic("there is no schema of " + t.String()) // by TestSchemaIsCurrent
}

func (w writer) ofMap(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[anyObject]():
		return schema{"type": "object"}
	case reflect.TypeFor[policyFiles]():
		return schema{
			"type": "object", "additionalProperties": schema{"type": "string"},
			"propertyNames": schema{"pattern": `^[-._a-zA-Z0-9]+\.(yaml|yml|json|rego)$`},
		}
	}
	return schema{"type": "object", "additionalProperties": w.of(t.Elem(), "")}
}

// referTo returns a reference to the definition of a type.
func (w writer) referTo(t reflect.Type, tags reflect.StructTag) schema {
	name := strings.ReplaceAll(strings.TrimPrefix(t.PkgPath(), "k8s.io/"), "/", ".") + "." + t.Name()
	if w.defs[name] == nil {
		w.defs[name] = schema{} // types can have themselves
		w.defs[name] = w.object(t)
	}
	s := schema{"$ref": "#/$defs/" + name}
	if _, ok := tags.Lookup("exactlyOne"); ok {
		s["minProperties"], s["maxProperties"] = 1, 1
	}
	return s
}

// object returns the schema of a struct, which has no other fields than its own.
func (w writer) object(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	w.fields(t, properties, &required)
	s := schema{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func (w writer) fields(t reflect.Type, properties schema, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case f.Anonymous && (name == "" || strings.Contains(options, "inline")):
			w.fields(f.Type, properties, required)
			continue
		}
		properties[name] = w.of(f.Type, f.Tag)
		if _, ok := f.Tag.Lookup("required"); ok {
			*required = append(*required, name)
		}
	}
}

func number(kind string, tags reflect.StructTag) schema {
	s := schema{"type": kind}
	for _, bound := range []string{"minimum", "maximum"} {
		if value := tags.Get(bound); value != "" {
			s[bound] = json.Number(value)
		}
	}
	return s
}

func text(tags reflect.StructTag) schema {
	s := schema{"type": "string"}
	if words, ok := tags.Lookup("enum"); ok {
		return schema{"enum": strings.Split(words, "|")}
	}
	if pattern, ok := tags.Lookup("pattern"); ok {
		s["pattern"] = pattern
	}
	for _, bound := range []string{"minLength", "maxLength"} {
		if value, err := strconv.Atoi(tags.Get(bound)); err == nil {
			s[bound] = value
		}
	}
	return s
}
