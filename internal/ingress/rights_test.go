package ingress

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestRights: the role of the folder for a controller has the rights that the kinds need, and no others.
func TestRights(t *testing.T) {
	text, err := os.ReadFile("../../deploy/kustomize/controller/account.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(one), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				got = append(got, rule.APIGroups[0]+" "+resource+" "+strings.Join(rule.Verbs, ","))
			}
		}
	}
	var want []string
	for _, k := range Kinds {
		want = append(want, k.Group+" "+k.Plural+" list,watch")
		if k.HasStatus {
			want = append(want, k.Group+" "+k.Plural+"/status patch")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the role has\n%q\nnot\n%q", got, want)
	}
}
