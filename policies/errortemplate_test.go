package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestErrorTemplates: a name of a template that no file has is an error that lists the names that there are.
func TestErrorTemplates(t *testing.T) {
	const (
		template = "apiVersion: admission-gateway.io/v1alpha1\nkind: ErrorTemplate\nmetadata: {name: nest}\nspec: {body: 'self.message'}\n"
		resource = "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: as}\nspec:\n  version: v1\n  names: {plural: as, kind: A}\n  paths: {collection: /as}\n  schema: {openAPIV3Schema: {type: object}}\n"
		document = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\nx-admission-gateway-resource: {errorFormat: Template, errorTemplate: NAME}\npaths:\n  /as:\n    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}\n" +
			"  /bs:\n    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}\n"
		definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com, annotations: {ANNOTATIONS}}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: widgets, kind: Widget}\n" +
			"  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object}}}]\n"
	)
	annotated := func(annotations string) string { return strings.Replace(definition, "ANNOTATIONS", annotations, 1) }
	for _, c := range []struct {
		name  string
		files string
		want  []string
	}{
		{"there is one", resource + "  errorFormat: Template\n  errorTemplate: nest\n---\n" + template, nil},
		{"there is another one", resource + "  errorFormat: Template\n  errorTemplate: stripe\n---\n" + template,
			[]string{"f.yaml:10: spec.errorTemplate: must be the name of an ErrorTemplate of the policy files: 'nest'"}},
		{"there is none", resource + "  errorFormat: Template\n  errorTemplate: nest\n", []string{"f.yaml:10: spec.errorTemplate: must be the name of an ErrorTemplate, and the policy files have none"}},
		{"no name", resource + "  errorFormat: Template\n---\n" + template, []string{"f.yaml:4: spec: Invalid value: must have `errorTemplate` where `errorFormat` is 'Template', and only there"}},
		{"no format", resource + "  errorTemplate: nest\n---\n" + template, []string{"f.yaml:4: spec: Invalid value: must have `errorTemplate` where `errorFormat` is 'Template', and only there"}},
		{"of a document", strings.Replace(document, "NAME", "nest", 1) + "---\n" + template, nil},
		{"none of a document's", strings.Replace(document, "NAME", "stripe", 1) + "---\n" + template, []string{"f.yaml:5: paths[/as]: must be the name of an ErrorTemplate of the policy files: 'nest'"}},
		{"of a definition", annotated("backend.admission-gateway.io/error-format: Template, backend.admission-gateway.io/error-template: nest") + "---\n" + template, nil},
		{"none of a definition's", annotated("backend.admission-gateway.io/error-format: Template, backend.admission-gateway.io/error-template: stripe") + "---\n" + template,
			[]string{"f.yaml:3: metadata.annotations[backend.admission-gateway.io/error-template]: must be the name of an ErrorTemplate of the policy files: 'nest'"}},
		{"no name in a definition", annotated("backend.admission-gateway.io/error-format: Template") + "---\n" +
			template,
			[]string{"f.yaml:3: metadata.annotations[backend.admission-gateway.io/error-format]: must be 'Template' where `backend.admission-gateway.io/error-template` names one, and only there"}},
		{"a template that does not compile", template + "---\n" +
			strings.Replace(strings.Replace(template, "nest", "other", 1), "self.message", "self.causes", 1),
			[]string{`f.yaml:9: spec.body: Invalid value: "self.causes": compilation failed: ERROR: <input>:1:5: undefined field 'causes' | self.causes | ....^`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			testutil.WriteFile(t, "f.yaml", c.files)
			_, found := Load([]string{"f.yaml"})
			var got []string
			for _, f := range found {
				if f.Severity == Error {
					line, _, _ := strings.Cut(f.String(), "\n")
					got = append(got, line)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
	t.Run("of a route", func(t *testing.T) {
		t.Chdir(t.TempDir())
		testutil.WriteFile(t, "f.yaml", template)
		for name, want := range map[string]string{"nest": "", "stripe": "the configuration: errorTemplate: 'stripe', which the route 'shop' has, must be the name of an ErrorTemplate of the policy files: 'nest'" +
			"f.yaml:3: metadata.name: warning: no route of the configuration and no resource names the ErrorTemplate 'nest', so that it writes nothing"} {
			got := ""
			for _, f := range CheckFor([]string{"f.yaml"},
				Gateway{Upstreams: []string{"main"},
					Routes: []Route{{Name: "shop", PathPrefix: "/", Upstream: "main", ErrorTemplate: name}}}) {
				got += f.String()
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}
