package schematest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Object is a resource that follows the schema, but for one place in about
// sloppy: something else stands there then.
func (g *Generator) Object(s *apiextensionsv1.JSONSchemaProps, sloppy int) []byte {
	body := g.value(s, sloppy)
	if body[0] != '{' {
		body = []byte("{}")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		panic(fmt.Sprintf("generated %s: %v", body, err))
	}
	members["apiVersion"] = json.RawMessage(`"schema.example/v1"`)
	members["kind"] = json.RawMessage(`"Object"`)
	members["metadata"] = g.metadata(sloppy, `"name":"one"`)
	return g.print(members)
}

func (g *Generator) metadata(sloppy int, first string) json.RawMessage {
	var parts []string
	if g.one(sloppy) {
		parts = append(parts, pick(g, metadataParts))
	}
	if !g.one(sloppy) {
		parts = append(parts, first)
	}
	if g.one(3) {
		parts = append(parts, `"labels":{"app":"a"}`)
	}
	if g.one(6) {
		parts = append(parts, `"annotations":{"example.com/x":"some text"}`)
	}
	if g.one(sloppy) {
		parts = append(parts, pick(g, metadataParts))
	}
	seen := map[string]bool{}
	var kept []string
	for _, part := range parts {
		if key, _, _ := strings.Cut(part, ":"); !seen[key] {
			seen[key] = true
			kept = append(kept, part)
		}
	}
	return json.RawMessage("{" + strings.Join(kept, ",") + "}")
}

// metadataParts are members of metadata, right and wrong.
var metadataParts = []string{
	`"labels":{"b d":"x"}`, `"labels":{"a":"-"}`, `"labels":{"a":1}`, `"labels":null`, `"labels":[]`,
	`"labels":{"example.com/a":"","b":"B.1_2"}`,
	`"annotations":{"a":null}`, `"annotations":{"Example.com/A":"b"}`, `"annotations":{"-":"b"}`, `"finalizers":["f"]`,
	`"finalizers":["f f"]`,
	`"finalizers":["orphan","foregroundDeletion"]`, `"finalizers":["example.com/f",null]`, `"bogus":1`,
	`"generation":-1`, `"generation":1`, `"generation":1.0`,
	`"generation":"1"`, `"creationTimestamp":null`, `"creationTimestamp":"2020-01-02T03:04:05Z"`,
	`"creationTimestamp":"soon"`, `"uid":"u"`,
	`"ownerReferences":[{"kind":"A","uid":"1","zz":2}]`,
	`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"}]`,
	`"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"a","uid":"1"}]`,
	`"ownerReferences":[{"apiVersion":"a/v1","kind":"A","name":"","uid":"1"}]`,
	`"ownerReferences":[{"apiVersion":"a/v1","kind":"A","name":"a","uid":"1","controller":true},{"apiVersion":"a/v1","kind":"B","name":"b","uid":"2","controller":true}]`,
	`"ownerReferences":[{"apiVersion":"a/b/c","kind":"A","name":"a","uid":"1"}]`,
	`"ownerReferences":[{"apiVersion":"/v1","kind":"A","name":"a","uid":"1"}]`,
	`"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}},"time":"2020-01-02T03:04:05Z"}]`,
	`"managedFields":[{"operation":"Create"}]`, `"managedFields":[{"operation":"Apply","fieldsType":"FieldsV2"}]`,
	`"managedFields":[{"operation":"Apply","manager":"\u0001"}]`,
	`"managedFields":[{}]`, `"generateName":"a-"`, `"generateName":"-"`, `"generateName":"a/b"`,
	`"deletionGracePeriodSeconds":3`, `"name":"A"`, `"name":""`, `"name":"a/b"`,
	`"name":3`, `"namespace":"team-a"`, `"namespace":"a.b"`,
}

// print writes members in random order.
func (g *Generator) print(members map[string]json.RawMessage) []byte {
	keys := sorted(members)
	g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	b := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(key)
		b = append(append(append(b, name...), ':'), members[key]...)
	}
	return append(b, '}')
}

// sorted are the keys of a map. Its own order is random; the seed alone is to decide.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var scalars = []string{`null`, `true`, `false`, `0`, `1`, `-1`, `5`, `1.0`, `1.5`, `1e1`, `3000000000`,
	`9007199254740993`, `1e17`, `9223372036854775808`,
	`""`, `"a"`, `"abc"`, `"Open"`, `"éé"`, `"2020-01-02"`, `"2020-01-02T03:04:05Z"`, `"5s"`, `"10.0.0.1"`, `"::1"`,
	`"10.0.0.0/8"`, `"aGk="`,
	`"https://example.com/x"`, `"a@b.c"`, `"example.com"`, `"123e4567-e89b-12d3-a456-426614174000"`,
	`"00:00:5e:00:53:01"`, `"42"`, `[]`, `{}`,
	`[1,"a",null]`, `{"a":1,"zz":{"b":2}}`}

// value is JSON for the schema.
func (g *Generator) value(s *apiextensionsv1.JSONSchemaProps, sloppy int) []byte {
	if g.one(sloppy) {
		return []byte(pick(g, scalars))
	}
	if len(s.Enum) > 0 && !g.one(5) {
		return pick(g, s.Enum).Raw
	}
	if s.XIntOrString {
		return []byte(pick(g, []string{`1`, `"a"`, `"80%"`}))
	}
	switch s.Type {
	case "object":
		members := map[string]json.RawMessage{}
		for _, name := range sorted(s.Properties) {
			property := s.Properties[name]
			if !g.one(3) {
				members[name] = g.value(&property, sloppy)
			}
		}
		for _, name := range s.Required {
			if _, there := members[name]; !there && !g.one(sloppy) {
				property := s.Properties[name]
				members[name] = g.value(&property, sloppy)
			}
		}
		if a := s.AdditionalProperties; a != nil {
			for range g.IntN(3) {
				key := pick(g, names)
				if a.Schema != nil {
					members[key] = g.value(a.Schema, sloppy)
				} else {
					members[key] = json.RawMessage(pick(g, scalars))
				}
			}
		}
		if s.XEmbeddedResource && !g.one(sloppy) {
			members["apiVersion"] = json.RawMessage(`"v1"`)
			members["kind"] = json.RawMessage(pick(g, []string{`"Pod"`, `"Pod"`, `"Pod"`, `"-"`, `""`}))
			members["metadata"] = g.metadata(sloppy, `"name":"a/b"`[:len(`"name":"a`)]+`"`)
		}
		if g.one(sloppy) {
			members[pick(g, []string{"extra", "zz", "b", "items"})] = json.RawMessage(pick(g, scalars))
		}
		return g.print(members)
	case "array":
		b := []byte{'['}
		length := g.IntN(4)
		if g.one(6) {
			length = g.IntN(20)
		}
		for i := range length {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, g.value(s.Items.Schema, sloppy)...)
		}
		return append(b, ']')
	case "string":
		return []byte(pick(g, []string{`"a"`, `"abc"`, `"a-b"`, `"Open"`, `"2020-01-02T03:04:05Z"`, `"10.0.0.1"`,
			`"5s"`, `"aGk="`, `"éé"`}))
	case "integer":
		return strconv.AppendInt(nil, int64(g.IntN(9)), 10)
	case "number":
		return []byte(pick(g, []string{`1`, `2`, `1.5`, `0.25`, `3.0`, `6`}))
	case "boolean":
		return []byte(pick(g, []string{`true`, `false`}))
	}
	return []byte(pick(g, scalars))
}
