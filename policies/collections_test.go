package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestNoCollection: of objects whose document has no collection nothing is listed, which files that would have them
// listed are told.
func TestNoCollection(t *testing.T) {
	const (
		desks  = "openapi: 3.0.3\ninfo: {title: Desks, version: '1'}\nservers: [{url: /v1}]\npaths:\n  '/desks/{id}': {get: {responses: {}}}\n"
		list   = "  /desks: {get: {responses: {}}}\n"
		source = "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: desks}\nspec: {resource: {apiVersion: v1, resource: desks}, mode: OnDemand}\n"
		policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n" +
			"spec:\n  paramKind: {apiVersion: v1, kind: Desk}\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [chairs]}]}\n" +
			"  validations: [{expression: params != null}]\n" +
			"---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\n" +
			"spec:\n  policyName: p\n  validationActions: [Deny]\n  paramRef: {parameterNotFoundAction: Deny, REF}\n"
		chairs = "---\nopenapi: 3.0.3\ninfo: {title: Chairs, version: '1'}\nservers: [{url: /v1}]\npaths:\n  /chairs: {post: {responses: {}}}\n"
	)
	for name, c := range map[string]struct{ document, ref, source, want string }{
		"listed":   {desks + list, "selector: {}", source, ""},
		"a source": {desks, "name: a", source, "s.yaml:4: spec.resource: must be a resource with a collection: the policy files describe no path that lists 'desks'\n"},
		"a selector": {desks, "selector: {}", "",
			"p.yaml:15: spec.paramRef.selector: must not be set, because the policy files describe no path that lists objects of the kind 'Desk': name one, or describe their list\n"},
		"a name": {desks, "name: a", "", ""},
	} {
		files := map[string]string{"d.yaml": c.document + chairs, "p.yaml": strings.Replace(policy, "REF", c.ref, 1)}
		if c.source != "" {
			files["s.yaml"] = c.source
		}
		dir := testutil.WriteFiles(t, files)
		var got strings.Builder
		for _, f := range Check([]string{dir}) {
			if f.Severity == Error || f.Severity == Warning {
				got.WriteString(strings.ReplaceAll(f.String(), dir+"/", "") + "\n")
			}
		}
		if got.String() != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got.String(), c.want)
		}
	}
}
