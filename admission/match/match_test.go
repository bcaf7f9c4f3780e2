package match

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/resource"
)

func deploymentRule(versions ...string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"*"},
			Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: versions,
				Resources: []string{"deployments"}},
		}}}}
}

func create(group, version, plural string, l admission.Lookup) *admission.Attributes {
	return &admission.Attributes{
		Info:      &resource.Info{Group: group, Version: version, Resource: plural, Namespace: "team-a"},
		Operation: admission.Create,
		Object:    admissiontest.Parse("metadata: {name: web}"),
		Lookup:    l,
	}
}

// TestAsksForWhatItNeeds: nothing is looked up for a request that does not need it to be decided.
func TestAsksForWhatItNeeds(t *testing.T) {
	byTier := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	byName := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-a"}}
	for _, c := range []struct {
		name           string
		constraints    *admissionv1.MatchResources
		selector       *metav1.LabelSelector
		group, version string
		asked          int
		matches        bool
	}{
		{"no selector", deploymentRule("v1"), nil, "apps", "v1", 0, true},
		{"the name alone", deploymentRule("v1"), byName, "apps", "v1", 0, true},
		{"labels", deploymentRule("v1"), byTier, "apps", "v1", 1, true},
		{"labels, of another resource", deploymentRule("v1"), byTier, "batch", "v1", 0, false},
	} {
		lookup := (&admissiontest.Lookup{}).Add("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {tier: prod}}")
		c.constraints.NamespaceSelector = c.selector
		m, _ := New(c.constraints, nil, nil)
		a := create(c.group, c.version, "deployments", lookup)
		for range 2 { // what was looked up once is known
			if _, matches, err := m.Matches(context.Background(), a); matches != c.matches || err != nil ||
				lookup.Asked != c.asked {
				t.Errorf("%s: %v, %v after %d questions", c.name, matches, err, lookup.Asked)
			}
		}
	}
}

// TestCannotTell: a match that cannot be determined is an error, for the failure policy to decide.
func TestCannotTell(t *testing.T) {
	broken := &admissiontest.Lookup{Err: errors.New("the backend cannot be reached")}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	for _, c := range []struct {
		name     string
		selector *metav1.LabelSelector
		version  string
		lookup   admission.Lookup
		want     string
	}{
		{"the namespace cannot be read", selector, "v1", broken, "the backend cannot be reached"},
		{"the namespace does not exist", selector, "v1", &admissiontest.Lookup{}, `namespaces "team-a" not found`},
		{"nobody can be asked", selector, "v1", nil, "the labels of namespace 'team-a' are not known"},
		{"other versions cannot be told", nil, "v2", broken, "the other versions of 'deployments.apps' cannot be told: the backend cannot be reached"},
	} {
		constraints := deploymentRule("v1")
		constraints.NamespaceSelector = c.selector
		m, _ := New(constraints, nil, nil)
		if _, matches, err := m.Matches(context.Background(),
			create("apps", c.version, "deployments", c.lookup)); matches || err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, %v", c.name, matches, err)
		}
	}
}

// TestReviewsAreNeverAdmitted: questions to kube-apiserver are no objects.
func TestReviewsAreNeverAdmitted(t *testing.T) {
	m, _ := New(&admissionv1.MatchResources{
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"*"},
			Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
		}}}}, nil, nil)
	for r, want := range map[schema.GroupResource]bool{
		{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}: false,
		{Group: "authentication.k8s.io", Resource: "tokenreviews"}:        false,
		// the gateway's own are files
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}: true,
		{Group: "example.com", Resource: "tokenreviews"}:                                 true,
		{Group: "apps", Resource: "deployments"}:                                         true,
	} {
		if _, matches, err := m.Matches(context.Background(),
			create(r.Group, "v1", r.Resource, nil)); matches != want || err != nil {
			t.Errorf("%s: %v, %v", r, matches, err)
		}
	}
}
