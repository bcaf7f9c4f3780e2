package vap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/status"
)

// causesOf writes the causes of the answer, one a line, without what all begin with.
func causesOf(t *testing.T, object, spec string) string {
	t.Helper()
	a := post(t, object)
	answer := run(t, a, policyOf(t, spec)).Err(a)
	if answer == nil {
		return "allowed"
	}
	const denied = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
	lines := []string{strings.ReplaceAll(status.From(answer).ErrStatus.Message, denied, "")}
	for _, c := range status.From(answer).ErrStatus.Details.Causes {
		text, ok := strings.CutPrefix(c.Message, denied)
		if !ok {
			t.Errorf("a cause does not name its policy: %s", c.Message)
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", c.Type, c.Field, text))
	}
	return strings.Join(lines, "\n")
}

// TestDerivedMessages: VAL-4: if the author gave no message the gateway has one; the author's is
// used if there is one, with the derived field; items are further causes.
func TestDerivedMessages(t *testing.T) {
	const web = `{"metadata":{"name":"web"},"spec":{"replicas":12,"strategy":"Other","containers":[{"name":"a","image":"nginx"},{"name":"b","image":"registry/b"},{"name":"c"}]}}`
	const forbidden = `deployments.apps "web" is forbidden: `
	for _, c := range []struct{ name, spec, want string }{
		{"a comparison", `
validations: [{expression: object.spec.replicas <= 10}]`,
			forbidden + "spec.replicas: Invalid value: 12: must be less than or equal to 10\n" +
				"FieldValueInvalid spec.replicas: spec.replicas: Invalid value: 12: must be less than or equal to 10"},
		{"a comparison with the author's message", `
validations: [{expression: object.spec.replicas <= 10, message: too many}]`,
			forbidden + "too many\nFieldValueInvalid spec.replicas: too many"},
		{"a required field", `
validations: [{expression: has(object.spec.owner)}]`,
			forbidden + "spec.owner: Required value\nFieldValueRequired spec.owner: spec.owner: Required value"},
		{"a required field with the author's message", `
validations: [{expression: has(object.spec.owner), message: name an owner}]`,
			forbidden + "name an owner\nFieldValueRequired spec.owner: name an owner"},
		{"an enumeration", `
validations: [{expression: "object.spec.strategy in ['Recreate', 'RollingUpdate']"}]`,
			forbidden + `spec.strategy: Unsupported value: "Other": supported values: "Recreate", "RollingUpdate"` + "\n" +
				`FieldValueNotSupported spec.strategy: spec.strategy: Unsupported value: "Other": supported values: "Recreate", "RollingUpdate"`},
		{"the conjuncts that fail", `
validations: [{expression: "has(object.spec.replicas) && object.spec.replicas <= 10 && object.spec.strategy != 'Other'"}]`,
			forbidden + `[spec.replicas: Invalid value: 12: must be less than or equal to 10, spec.strategy: Invalid value: "Other": must not be 'Other']` + "\n" +
				`FieldValueInvalid spec.replicas: [spec.replicas: Invalid value: 12: must be less than or equal to 10, spec.strategy: Invalid value: "Other": must not be 'Other']` + "\n" +
				`FieldValueInvalid spec.strategy: spec.strategy: Invalid value: "Other": must not be 'Other'`},
		{"the items that fail", `
validations: [{expression: "object.spec.containers.all(c, has(c.image) && c.image.startsWith('registry/'))"}]`,
			forbidden + `[spec.containers[0].image: Invalid value: "nginx": must start with 'registry/', spec.containers[2].image: Required value]` + "\n" +
				`FieldValueInvalid spec.containers: [spec.containers[0].image: Invalid value: "nginx": must start with 'registry/', spec.containers[2].image: Required value]` + "\n" +
				`FieldValueInvalid spec.containers[0].image: spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`FieldValueRequired spec.containers[2].image: spec.containers[2].image: Required value`},
		{"the items that fail, with the author's message", `
validations: [{expression: "object.spec.containers.all(c, has(c.image))", message: every container needs an image}]`,
			forbidden + "every container needs an image\n" +
				"FieldValueInvalid spec.containers: every container needs an image\n" +
				"FieldValueRequired spec.containers[2].image: spec.containers[2].image: Required value"},
		{"through variables", `
variables: [{name: containers, expression: "object.spec.containers"}, {name: few, expression: object.spec.replicas < 5}]
validations: [{expression: "variables.few && variables.containers.exists(c, c.name == 'log')"}]`,
			forbidden + "[spec.replicas: Invalid value: 12: must be less than 5, spec.containers: Invalid value: must contain an item in which `name` is 'log']\n" +
				"FieldValueInvalid spec.replicas: [spec.replicas: Invalid value: 12: must be less than 5, spec.containers: Invalid value: must contain an item in which `name` is 'log']\n" +
				"FieldValueInvalid spec.containers: spec.containers: Invalid value: must contain an item in which `name` is 'log'"},
		{"an operand that has no place", `
validations: [{expression: "object.spec.replicas % 2 == 1 ? object.spec.containers.size() == 1 : object.spec.containers.map(c, c.name).join(',') == 'a'"}]`,
			forbidden + "spec.containers: Invalid value: `spec.containers.map(c, c.name).join(\",\")` must be 'a' when `spec.replicas % 2` is not 1\n" +
				"FieldValueInvalid spec.containers: spec.containers: Invalid value: `spec.containers.map(c, c.name).join(\",\")` must be 'a' when `spec.replicas % 2` is not 1"},
		{"a message that fails", `
validations: [{expression: object.spec.replicas <= 10, messageExpression: string(object.spec.none)}]`,
			forbidden + "failed expression: object.spec.replicas <= 10\n" +
				"FieldValueInvalid spec.replicas: failed expression: object.spec.replicas <= 10\n" +
				"FieldValueInvalid spec.replicas: spec.replicas: Invalid value: 12: must be less than or equal to 10"},
		{"an expression without a value", `
validations: [{expression: object.spec.none <= 10}]`,
			forbidden + "expression 'object.spec.none <= 10' resulted in error: no such key: none\n" +
				"FieldValueInvalid spec.none: expression 'object.spec.none <= 10' resulted in error: no such key: none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := causesOf(t, web, c.spec); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestExplanationKeepsVerdicts: what is found out about a failure has only what the validations leave of the budget, so
// that a policy that comes close to it denies what it denied.
func TestExplanationKeepsVerdicts(t *testing.T) {
	list := `{"metadata":{"name":"web"},"spec":{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + `]}}`
	near := "  - {expression: \"object.spec.l.all(a, lists.range(30).all(b, b >= 0)) && object.spec.l.size() == 0\", message: m}\n"
	a := post(t, list)
	r := run(t, a, policyOf(t, "validations:\n"+strings.Repeat(near, 10)))
	if got := r.Denials(); len(got) != 10 || got[9].Failed {
		t.Errorf("%d denials: %v", len(got), got)
	}
}
