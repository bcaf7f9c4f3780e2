package kubernetes

import (
	"context"
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A watcher is a policy that may read the stored object.
type watcher struct {
	operations admission.Operation
	needsOld   bool
}

func (watcher) Name() string { return "watcher" }

func (p watcher) Rules() []admission.Rule {
	return []admission.Rule{{Group: "*", Resource: "*", Operations: p.operations}}
}

func (p watcher) NeedsOld() bool { return p.needsOld }

func (watcher) FailurePolicy() admission.FailurePolicy { return admission.Fail }

func (watcher) Validate(context.Context, *admission.Attributes, *admission.Report) error { return nil }

// TestRules: what the role of the gateway's own account has to allow, by verb and policies.
func TestRules(t *testing.T) {
	const get, list = "get", "list"
	update, del := admission.Update, admission.Delete
	for name, c := range map[string]struct {
		policy   *watcher
		verb     resource.Verb
		resource string
		sub      string
		want     []string // verbs of the resource, and a subresource behind a slash
	}{
		"no policy":                   {nil, resource.VerbUpdate, "widgets", "", nil},
		"a create":                    {&watcher{admission.Create, true}, resource.VerbCreate, "widgets", "", nil},
		"an update that may create":   {&watcher{update, false}, resource.VerbUpdate, "widgets", "", []string{get}},
		"an update of the old object": {&watcher{update, true}, resource.VerbUpdate, "widgets", "", []string{get}},
		"a patch":                     {&watcher{update, false}, resource.VerbPatch, "widgets", "", nil},
		"a patch of the old object":   {&watcher{update, true}, resource.VerbPatch, "widgets", "", []string{get}},
		"an update of a scale": {&watcher{update, true}, resource.VerbUpdate, "widgets", "scale",
			[]string{"get/scale"}},
		"an update of a status": {&watcher{update, true}, resource.VerbUpdate, "widgets", "status", []string{get}},
		"finalizing a namespace": {&watcher{update, true}, resource.VerbUpdate, "namespaces", "finalize",
			[]string{get}},
		"finalizing something else": {&watcher{update, true}, resource.VerbUpdate, "widgets", "finalize",
			[]string{"get/finalize"}},
		"a deletion":                        {&watcher{del, false}, resource.VerbDelete, "widgets", "", nil},
		"a deletion of the old object":      {&watcher{del, true}, resource.VerbDelete, "widgets", "", []string{get}},
		"a deletion of Pods":                {&watcher{del, false}, resource.VerbDelete, "pods", "", []string{get}},
		"a deletion of Pods, and no policy": {nil, resource.VerbDelete, "pods", "", nil},
		"a collection":                      {&watcher{del, false}, resource.VerbDeleteCollection, "widgets", "", nil},
		"a collection of the old objects": {&watcher{del, true}, resource.VerbDeleteCollection, "widgets", "",
			[]string{list, get}},
		"a read": {&watcher{update, true}, resource.VerbGet, "widgets", "", nil},
	} {
		var validators []admission.Validator
		if c.policy != nil {
			validators = []admission.Validator{*c.policy}
		}
		i := &resource.Info{
			Verb: c.verb, IsResource: true, APIPrefix: "api", Version: "v1", Resource: c.resource, Subresource: c.sub,
		}
		s := New(Options{Policies: admission.NewChain(nil, validators).For(i), Schemas: storage.Schemas{}}, c.sub)
		var got []string
		for _, r := range s.Rules(i) {
			if want := (status.AccessRule{Resource: c.resource, Subresource: r.Subresource, Verb: r.Verb}); r != want {
				t.Errorf("%s: the rule %v, want %v", name, r, want)
			}
			verb := r.Verb
			if r.Subresource != "" {
				verb += "/" + r.Subresource
			}
			got = append(got, verb)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
