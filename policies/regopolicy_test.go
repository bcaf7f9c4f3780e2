package policies

import (
	"bytes"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/report"
)

// inlinePolicy is a RegoPolicy with a module in its lines 6 and below; more is further fields.
func inlinePolicy(more, module string) string {
	spec := strings.TrimSuffix(strings.TrimPrefix(regoPolicyOf("p", ""), "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: p}\nspec: {"), "}\n")
	return "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: p}\nspec:\n  " + spec + "\n" + more +
		"  rego: |\n    " + strings.ReplaceAll(module, "\n", "\n    ") + "\n"
}

// TestRegoFindings: what is wrong in a module is shown where it stands.
func TestRegoFindings(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a module in a policy", map[string]string{"p.yaml": inlinePolicy("", "package p\ndeny contains msg if {\n\tinput.review.name\n}")}, "" +
			"p.yaml:8:19: rego_unsafe_var_error: var msg is unsafe\n" +
			"    deny contains msg if {\n" +
			"                  ^\n"},
		{"a module in one line of a policy", map[string]string{"p.yaml": regoPolicyOf("p", "{rego: 'package p deny contains msg if input.review.name'}")}, "" +
			"p.yaml:4: rego_unsafe_var_error: var msg is unsafe\n"},
		{"a module in a file", map[string]string{"p.yaml": regoPolicyOf("p", ""), "a.rego": "package p\r\n\r\ndeny contains \"no\" if {\r\n\tx := 1\r\n}\r\n"}, "" +
			"a.rego:4:2: warning: rego_compile_error: assigned var x unused\n" +
			"    x := 1\n" +
			"    ^\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, test.files)
			var got bytes.Buffer
			if err := report.Write(&got, report.Text, Check([]string{dir}), nil); err != nil {
				t.Fatal(err)
			}
			if text := strings.ReplaceAll(got.String(), dir+"/", ""); text != test.want {
				t.Errorf("got\n%s\nwant\n%s", text, test.want)
			}
		})
	}
}
