package match

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
)

// TestWildcard: stars at both ends stand for any text.
func TestWildcard(t *testing.T) {
	for _, c := range []struct {
		wildcard, name     string
		matches, generated bool
	}{
		{"a", "a", true, false}, {"a", "ab", false, false}, {"a*", "ab", true, true}, {"*b", "ab", true, false},
		{"*b", "ba", false, false},
		{"*b*", "abc", true, true}, {"*", "", true, true}, {"*", "x", true, true}, {"**", "x", true, true},
		{"", "", true, false}, {"a*b", "a*b", true, false}, {"a*b", "axb", false, false},
	} {
		if got := Wildcard(c.wildcard).Matches(c.name); got != c.matches {
			t.Errorf("%q matches %q: %t", c.wildcard, c.name, got)
		}
		if got := Wildcard(c.wildcard).MatchesGenerated(c.name); got != c.generated {
			t.Errorf("%q matches what begins with %q: %t", c.wildcard, c.name, got)
		}
	}
}

// TestRules: the rules that a match block gives a chain, so that it need not be asked about other
// requests.
func TestRules(t *testing.T) {
	resources := func(k schema.GroupKind) ([]string, bool) {
		if k.Kind == "Pod" && k.Group == "" {
			return []string{"pods"}, true
		}
		return nil, false
	}
	for text, want := range map[string]string{
		"{}": "*/*",
		"{kinds: [{apiGroups: [''], kinds: [Pod]}]}":                                       "/pods",
		"{kinds: [{apiGroups: ['', apps], kinds: [Pod]}]}":                                 "/pods apps/*",
		"{kinds: [{apiGroups: ['*'], kinds: [Pod]}]}":                                      "*/*",
		"{kinds: [{apiGroups: [apps], kinds: ['*']}]}":                                     "apps/*",
		"{kinds: [{apiGroups: [autoscaling], kinds: [Scale]}]}":                            "*/*", // deployments/scale
		"{kinds: [{apiGroups: [''], kinds: [Pod]}], namespaces: [a, b]}":                   "/pods@a,b",
		"{kinds: [{apiGroups: [''], kinds: [Pod]}], namespaces: [a, 'b*']}":                "/pods",
		"{kinds: [{apiGroups: [''], kinds: [Pod]}], labelSelector: {matchLabels: {x: z}}}": "/pods?x=z",
	} {
		s := &Spec{}
		if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range s.Rules(admission.Create, resources) {
			rule := r.Group + "/" + r.Resource
			if len(r.Namespaces) > 0 {
				rule += "@" + strings.Join(r.Namespaces, ",")
			}
			for _, l := range r.Labels {
				rule += fmt.Sprintf("?%s=%s", l.Key, l.Value)
			}
			got = append(got, rule)
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
