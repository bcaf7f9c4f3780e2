package gatekeeper

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// conflicts is the error about a rule with two values, which two versions of OPA word differently.
var conflicts = regexp.MustCompile(`\S+: (\S+: )?eval_conflict_error: .*`)

// withoutPlaces returns a message whose lines are sorted, with the same words for each conflict.
func withoutPlaces(message string) string {
	lines := strings.Split(conflicts.ReplaceAllString(strings.TrimPrefix(message, refusal), "two values"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestParameters: constraints with parameters refuse what Gatekeeper refuses, also if a rule is
// evaluated with another input, and if a rule has two values. Two constraints of a template have
// their own parameters each.
func TestParameters(t *testing.T) {
	const conflicting = 2
	modules := []string{
		// The pod of a Deployment is judged as if it were the object.
		`package tried
violation[{"msg": msg}] {
	pod := input.review.object.spec.template
	privileged(pod) with input.review.object as pod
	msg := sprintf("%v is privileged, allowed is %v", [pod.metadata.name, input.parameters.allowed])
}
privileged(pod) { input.review.object.spec.containers[_].privileged; not allowed }
allowed { input.parameters.allowed[_] == input.review.object.metadata.name }`,
		// The parameters are replaced for one rule, and are what they were after it.
		`package tried
violation[{"msg": msg}] {
	own := most
	other := most with input.parameters.most as 7
	input.review.object.spec.replicas > own
	msg := sprintf("%v > %v, not %v; %v", [input.review.object.spec.replicas, own, other, most])
}
most = input.parameters.most`,
		// A rule of two values fails, whatever the parameters are.
		`package tried
violation[{"msg": msg}] { level == "high"; msg := "high" }
level = "high" { input.review.object.spec.replicas > input.parameters.most }
level = "low" { input.review.object.spec.replicas > 0 }`,
		// Sets of the object alone are the same for all constraints, and sets of parameters are not.
		`package tried
violation[{"msg": msg}] {
	name := names[_]
	not wanted[name]
	msg := sprintf("%v is none of %v", [name, wanted])
}
names[n] { n := input.review.object.spec.template.spec.containers[_].name }
wanted[n] { n := input.parameters.allowed[_] }`,
	}
	var policies []string
	for i, module := range modules {
		kind := fmt.Sprintf("Tried%d", i)
		source, err := json.Marshal(module)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, fmt.Sprintf(`{"apiVersion":"templates.gatekeeper.sh/v1","kind":"ConstraintTemplate","metadata":{"name":%q},"spec":{"crd":{"spec":{"names":{"kind":%q},`+
			`"validation":{"openAPIV3Schema":{"type":"object","properties":{"most":{"type":"integer"},"allowed":{"type":"array","items":{"type":"string"}}}}}}},`+
			`"targets":[{"target":"admission.k8s.gatekeeper.sh","rego":%s}]}}`, strings.ToLower(kind), kind, source))
		for j, parameters := range []string{`{"most":2,"allowed":["web"]}`, `{"most":5,"allowed":["web","proxy"]}`,
			`{}`} {
			if i == conflicting && j > 0 {
				continue // an error for one constraint is one for all of its template in Gatekeeper
			}
			policies = append(policies, fmt.Sprintf(`{"apiVersion":"constraints.gatekeeper.sh/v1beta1","kind":%q,"metadata":{"name":"c%d-%d"},"spec":{"parameters":%s}}`, kind, i, j, parameters))
		}
	}
	c, files := newClient(t, false), map[string]string{}
	add(t, c, objectsOf(t, strings.Join(policies, "\n---\n")))
	for i, text := range policies {
		files[fmt.Sprintf("%d.json", i)] = text
	}
	g := start(t, files)
	addNamespaces(g)
	refused := 0
	for replicas := range 8 {
		for _, name := range []string{"web", "proxy", "batch"} {
			object := map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a"},
				"spec": map[string]any{"replicas": int64(replicas), "template": map[string]any{
					"metadata": map[string]any{"name": name},
					"spec": map[string]any{
						"containers": []any{map[string]any{"name": name, "privileged": replicas%2 == 0}}},
				}},
			}
			q := requestAbout(object, "CREATE")
			denied, warnings := ask(t, c, q)
			got := g.send(t, q)
			got.message, denied = withoutPlaces(got.message), withoutPlaces(denied)
			compare(t, q, got, denied, warnings)
			if denied != "" {
				refused++
			}
		}
	}
	if refused < 12 {
		t.Errorf("Gatekeeper refused %d of 24 requests", refused)
	}
}
