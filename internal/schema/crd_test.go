package schema_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// definition is a CustomResourceDefinition whose schema has spec as the schema of the field 'spec'.
func definition(t testing.TB, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := yaml.UnmarshalStrict([]byte(`
metadata: {name: widgets.lab.example.com}
spec:
  group: lab.example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: `+spec+`}}}
`), crd)
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

func lines(errs field.ErrorList) (all []string) {
	for _, err := range errs {
		all = append(all, err.Error())
	}
	slices.Sort(all)
	return all
}

func TestCompileCRD(t *testing.T) {
	for _, c := range []struct {
		name, spec     string
		warnings, errs []string
	}{
		{name: "valid", spec: `{type: object, properties: {a: {type: integer, default: 1}}}`},
		{
			name: "not structural",
			spec: `{type: object, properties: {a: {anyOf: [{type: integer}]}}}`,
			errs: []string{
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].anyOf[0].type: Forbidden: must be empty to be structural`,
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields`,
			},
		},
		{
			name: "a default that is invalid",
			spec: `{type: object, properties: {a: {type: integer, default: 1, minimum: 2}}}`,
			errs: []string{
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].default: Invalid value: 1: must be greater than or equal to 2`,
			},
		},
		{
			name: "a rule that does not compile",
			spec: `{type: object, x-kubernetes-validations: [{rule: "self.b == 1"}]}`,
			errs: []string{
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.b == 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'b'` + "\n | self.b == 1\n | ....^",
			},
		},
		{
			name: "a rule whose cost is estimated too high",
			spec: `{type: array, items: {type: array, items: {type: string}}, x-kubernetes-validations: [{rule: "self.all(a, self.all(b, a.all(c, b.all(d, c != d))))"}]}`,
			warnings: []string{
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`,
				`spec.versions[0].schema.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`,
			},
		},
		{
			name: "a format that nobody knows, and a set of objects",
			spec: `{type: object, properties: {a: {type: string, format: moon}, b: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic}}}}`,
			warnings: []string{
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].format: Invalid value: "moon": unrecognized format, which is not checked`,
				`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[b].x-kubernetes-list-type: Invalid value: "set": for items of type 'object' is not supported by server-side apply or CEL validation rules`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			crd := definition(t, c.spec)
			before := crd.DeepCopy()
			versions, warnings, errs := schema.CompileCRD(crd)
			if got := lines(errs); !slices.Equal(got, c.errs) {
				t.Errorf("errors:\n got %q\nwant %q", got, c.errs)
			}
			if got := lines(warnings); !slices.Equal(got, c.warnings) {
				t.Errorf("warnings:\n got %q\nwant %q", got, c.warnings)
			}
			if (len(versions) == 1) != (len(c.errs) == 0) {
				t.Errorf("got %d versions", len(versions))
			}
			if !reflect.DeepEqual(crd, before) {
				t.Error("the definition must not be changed")
			}
		})
	}
}

func TestCompileCRDVersions(t *testing.T) {
	crd := definition(t, `{type: object}`)
	deprecated := "use v1"
	crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1beta1", Deprecated: true, DeprecationWarning: &deprecated,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		Subresources: &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas",
				StatusReplicasPath: ".status.replicas"},
		},
	}, apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1alpha1", Served: true, Deprecated: true,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
	})
	versions, _, errs := schema.CompileCRD(crd)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for i := range versions {
		if versions[i].Schema == nil {
			t.Errorf("%s has no schema", versions[i].Name)
		}
		versions[i].Schema = nil
	}
	want := []schema.Version{
		{Name: "v1", Served: true},
		{Name: "v1beta1", Status: true, Scale: true, Warning: "use v1"},
		{Name: "v1alpha1", Served: true,
			Warning: "lab.example.com/v1alpha1 Widget is deprecated; use lab.example.com/v1 Widget"},
	}
	if !reflect.DeepEqual(versions, want) {
		t.Errorf("got %+v, want %+v", versions, want)
	}
}

func TestCompile(t *testing.T) {
	path := field.NewPath("spec", "schema", "openAPIV3Schema")
	for _, c := range []struct {
		name, schema string
		options      schema.Options
		errs         []string
	}{
		{"a bare object may have what is implied elsewhere", `{type: object, properties: {metadata: {type: array, items: {type: string}}, kind: {type: integer, default: 1}}}`,
			schema.Options{Path: path}, nil},
		{"a resource may not", `{type: object, properties: {kind: {type: integer}}}`,
			schema.Options{Path: path, Resource: true},
			[]string{`spec.schema.openAPIV3Schema.properties[kind].type: Invalid value: "integer": must be string`}},
		{"no object", `{type: array, items: {type: string}}`, schema.Options{Path: path, Resource: true},
			[]string{`spec.schema.openAPIV3Schema.type: Invalid value: "array": must be object at the root`}},
		{"neither an object nor an array", `{type: string}`, schema.Options{Path: path},
			[]string{`spec.schema.openAPIV3Schema.type: Invalid value: "string": must be object or array at the root`}},
		{"an array", `{type: array, items: {type: object, properties: {n: {type: integer, default: 1}}}}`, schema.Options{Path: path}, nil},
		{"paths of a bare object", `{type: object, properties: {a: {}}}`, schema.Options{Path: path},
			[]string{`spec.schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields`}},
		{"without a path", `{type: object, properties: {a: {}}}`, schema.Options{},
			[]string{`properties[a].type: Required value: must not be empty for specified object fields`}},
		{"rules of a bare object", `{type: object, x-kubernetes-validations: [{rule: "has(self.metadata)"}]}`,
			schema.Options{Path: path},
			[]string{`spec.schema.openAPIV3Schema.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"has(self.metadata)","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:4: undefined field 'metadata'` + "\n | has(self.metadata)\n | ...^"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			props := &apiextensionsv1.JSONSchemaProps{}
			if err := yaml.UnmarshalStrict([]byte(c.schema), props); err != nil {
				t.Fatal(err)
			}
			s, _, errs := schema.Compile(props, c.options)
			if got := lines(errs); !slices.Equal(got, c.errs) {
				t.Errorf("got %q\nwant %q", got, c.errs)
			}
			if (s == nil) != (len(c.errs) > 0) {
				t.Errorf("got schema %v", s)
			}
		})
	}
}

// What a bare object calls kind, apiVersion and metadata is its own.
func TestBareObject(t *testing.T) {
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(`{type: object, properties: {kind: {type: integer}, id: {type: string}}}`),
		props); err != nil {
		t.Fatal(err)
	}
	s, _, errs := schema.Compile(props, schema.Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	d := parsed(t, `{"kind":1,"id":"a","metadata":{"name":1},"apiVersion":2}`)
	var unknown schema.Unknown
	if err := s.Prune(d, &unknown); err != nil {
		t.Fatal(err)
	}
	if got, want := unknown.Messages(),
		[]string{`unknown field "apiVersion"`, `unknown field "metadata"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r := s.Validate(nil, d.Root(), document.Node{}); !r.Valid() {
		t.Errorf("got %v", r.Errors)
	}
}

// TestBareDefaults: the defaults of a bare object are its author's, also in what it calls metadata.
func TestBareDefaults(t *testing.T) {
	const metadata = `{type: object, default: {columns: []}, properties: {columns: {type: array, items: {type: string}, default: [id]}, rows: {type: object, default: {metadata: {name: 1}}, properties: {metadata: {type: object, properties: {name: {type: integer}}}}}}}`
	for text, want := range map[string]string{
		`{type: object, properties: {metadata: ` + metadata + `}}`: `{"columns":[],"rows":{"metadata":{"name":1}}}`,
		`{type: object, properties: {other: ` + metadata + `}}`:    `{"columns":[],"rows":{"metadata":{"name":1}}}`,
		`{type: array, items: {type: object, properties: {metadata: ` + metadata +
			`}}}`: `{"columns":[],"rows":{"metadata":{"name":1}}}`,
		`{type: object, properties: {kind: {type: array, default: [1], items: {type: integer}}}}`: `[1]`,
	} {
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := yaml.UnmarshalStrict([]byte(text), props); err != nil {
			t.Fatal(err)
		}
		s, _, errs := schema.Compile(props, schema.Options{})
		if len(errs) > 0 {
			t.Fatalf("%s: %v", text, errs)
		}
		root := s.Root()
		if items := root.Items(); items != nil {
			root = items
		}
		if got := string(root.Properties()[0].Shape.Default()); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func parsed(t testing.TB, text string) *document.Document {
	t.Helper()
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	t.Cleanup(d.Release)
	return d
}

// TestRecordedDefinitions plays definitions that a real API server took or refused.
func TestRecordedDefinitions(t *testing.T) {
	played := 0
	for _, c := range readCases(t, filepath.Join(suites(t), "cases", "policy-load.jsonl")) {
		if !strings.HasSuffix(c.Request.Path, "/customresourcedefinitions") {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(c.Request.Body, crd); err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		played++
		_, _, errs := schema.CompileCRD(crd)
		var got, want []string
		for _, err := range errs {
			got = append(got, string(err.Type)+" "+err.Field)
		}
		for _, cause := range c.Expect.Causes {
			// The server names fields of a version of the definition that is no longer written.
			want = append(want, cause.Reason+" "+strings.Replace(cause.Field, "spec.validation.",
				"spec.versions[0].schema.", 1))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", c.ID, got, want)
		}
	}
	if played < 20 {
		t.Errorf("%d cases played only", played)
	}
}
