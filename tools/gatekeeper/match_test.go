package gatekeeper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const alwaysTemplate = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: always}
spec:
  crd: {spec: {names: {kind: Always}, validation: {openAPIV3Schema: {type: object, properties: {say: {type: string}}}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package always
      violation[{"msg": input.parameters.say}] { true }
`

// pick returns one of the texts.
func pick(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

// randomMatch writes the members of a match block, a few of them, mostly such that they can match.
func randomMatch(r *rand.Rand) string {
	selectors := []string{
		"{matchLabels: {tier: prod}}", "{matchLabels: {tier: dev, a: b}}", "{}",
		"{matchExpressions: [{key: tier, operator: Exists}]}",
		"{matchExpressions: [{key: tier, operator: NotIn, values: [prod, dev]}]}",
		"{matchExpressions: [{key: a, operator: DoesNotExist}]}",
		"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [team-a, default]}]}",
		"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [team-a]}]}",
	}
	names := []string{"[team-a]", "['team-*']", "['*-a', default]", "['*']", "['*e*']", "[kube-system, team-b]", "[]",
		"['*-']"}
	members := []string{
		"kinds: " + pick(r, "[{apiGroups: [''], kinds: [Pod]}]", "[{apiGroups: ['*'], kinds: ['*']}]",
			"[{kinds: [Pod, Deployment]}]", "[{apiGroups: [apps]}]",
			"[{apiGroups: [shop.example.com], kinds: [Order]}, {apiGroups: [''], kinds: [Namespace]}]", "[{apiGroups: ['', apps], kinds: [Service, Deployment, Pod]}]", "[]",
			"[{apiGroups: [rbac.authorization.k8s.io], kinds: ['*']}]", "[{}]"),
		"scope: " + pick(r, "Cluster", "Namespaced", "'*'", "cluster"),
		"namespaces: " + pick(r, names...),
		"excludedNamespaces: " + pick(r, names...),
		"labelSelector: " + pick(r, selectors...),
		"namespaceSelector: " + pick(r, selectors...),
		"name: " + pick(r, "web", "'w*'", "'*b'", "'*e*'", "other", "'*'", "team-a"),
		"source: " + pick(r, "All", "Original", "Generated"),
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members[:r.IntN(4)], ", ") + "}"
}

// randomRequest carries an object of one of a few kinds, in a namespace or in none.
func randomRequest(r *rand.Rand) *request {
	q := &request{}
	kind := r.IntN(5)
	if kind < 3 {
		q.namespace = pick(r, "team-a", "team-b", "kube-system", "default")
	}
	in := "/namespaces/" + q.namespace
	name := pick(r, "web", "web-1", "other", "db")
	var apiVersion, named string
	switch kind {
	case 0:
		apiVersion, named, q.path = "v1", "Pod", "/api/v1"+in+"/pods"
	case 1:
		apiVersion, named, q.path = "apps/v1", "Deployment", "/apis/apps/v1"+in+"/deployments"
	case 2:
		apiVersion, named, q.path = "shop.example.com/v1", "Order", "/apis/shop.example.com/v1"+in+"/orders"
	case 3:
		apiVersion, named, q.path, name = "v1", "Namespace", "/api/v1/namespaces",
			pick(r, "team-a", "team-c", "kube-system")
	case 4:
		apiVersion, named, q.path = "rbac.authorization.k8s.io/v1", "ClusterRole",
			"/apis/rbac.authorization.k8s.io/v1/clusterroles"
	}
	object := func() map[string]any {
		metadata := map[string]any{"name": name}
		if q.namespace != "" {
			metadata["namespace"] = q.namespace
		}
		labels := map[string]any{}
		if r.IntN(2) == 0 {
			labels["tier"] = pick(r, "prod", "dev", "test")
		}
		if r.IntN(3) == 0 {
			labels["a"] = "b"
		}
		if len(labels) > 0 {
			metadata["labels"] = labels
		}
		return map[string]any{"apiVersion": apiVersion, "kind": named, "metadata": metadata}
	}
	q.object = object()
	if r.IntN(3) == 0 {
		q.old = object()
		q.old["metadata"].(map[string]any)["resourceVersion"] = "1"
		q.old["metadata"].(map[string]any)["uid"] = "u"
	}
	return q
}

// randomAction writes the enforcement action of a constraint.
func randomAction(r *rand.Rand) string {
	return pick(r, "", "", "", "enforcementAction: warn, ", "enforcementAction: dryrun, ",
		"enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: validation.gatekeeper.sh}]}, {action: warn, enforcementPoints: [{name: '*'}]}], ",
		"enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: audit.gatekeeper.sh}, {name: gator.gatekeeper.sh}]}], ")
}

// TestMatch: the same constraints match, do the same, and are reported in the same order.
func TestMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var constraints strings.Builder
	for i := range 90 {
		fmt.Fprintf(&constraints, "---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Always\nmetadata: {name: c%02d}\nspec: {%sparameters: {say: '%s %d'}, match: %s}\n",
			i, randomAction(r), pick(r, "a", "b", "c"), i, randomMatch(r))
	}
	g := start(t, map[string]string{"template.yaml": alwaysTemplate, "constraints.yaml": constraints.String()})
	addNamespaces(g)
	c := newClient(t, false)
	add(t, c, append(objectsOf(t, alwaysTemplate), objectsOf(t, constraints.String())...))
	refused, warned := 0, 0
	for range 400 {
		q := randomRequest(r)
		denied, warnings := ask(t, c, q)
		compare(t, q, g.send(t, q), denied, warnings)
		if denied != "" {
			refused++
		}
		warned += len(warnings)
	}
	if refused < 100 || warned < 100 {
		t.Errorf("Gatekeeper refused %d requests and gave %d warnings, which tells too little", refused, warned)
	}
}

// compare compares the gateway's answer with Gatekeeper's. Gatekeeper has no order of its own for what several
// constraints say in the same words.
func compare(t *testing.T, q *request, got answer, denied string, warnings []string) {
	t.Helper()
	var message string
	if got.code >= 400 {
		message = got.message
	}
	for _, of := range []struct{ got, want []string }{{strings.Split(message, "\n"), strings.Split(denied, "\n")},
		{got.warnings, warnings}} {
		if slices.Equal(texts(of.got), texts(of.want)) && slices.Equal(sorted(of.got), sorted(of.want)) {
			continue
		}
		t.Errorf("%s %s (old: %s) %d\ngot  %s\nwant %s", q.path, encoded(q.object), encoded(q.old), got.code,
			strings.Join(of.got, "\n     "), strings.Join(of.want, "\n     "))
	}
}

const refusal = `admission webhook "validation.gatekeeper.sh" denied the request: `

// texts are lines without the names of constraints.
func texts(lines []string) []string {
	short := make([]string, len(lines))
	for i, line := range lines {
		line = strings.TrimPrefix(line, refusal)
		if _, text, ok := strings.Cut(line, "] "); ok {
			line = text
		}
		short[i] = line
	}
	return short
}

func sorted(lines []string) []string {
	own := make([]string, len(lines))
	for i, line := range lines {
		own[i] = strings.TrimPrefix(line, refusal)
	}
	slices.Sort(own)
	return own
}
