package plain

import (
	"context"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// objectPolicy is a policy for the objects of a resource, and for none of their subresources.
type objectPolicy struct{}

func (objectPolicy) Name() string { return "objects" }

func (objectPolicy) Rules() []admission.Rule {
	return []admission.Rule{{Group: "g", Resource: "things", Subresources: []string{""}, Operations: admission.Update}}
}

func (objectPolicy) NeedsOld() bool { return false }

func (objectPolicy) FailurePolicy() admission.FailurePolicy { return admission.Fail }

func (objectPolicy) Validate(context.Context, *admission.Attributes, *admission.Report) error {
	return nil
}

// TestLockForRules: a policy judges what patches of the object make of it, and the backend applies them. No update
// comes in between that could break what the policy found, of the object or of a part of it.
func TestLockForRules(t *testing.T) {
	described := &resource.Resource{
		Group: "g", Version: "v1", Names: resource.Names{Plural: "things"},
		Subresources: resource.Subresources{Status: true},
		Backend:      resource.Backend{Patch: resource.PatchValidated, Versions: resource.ETagVersions},
	}
	for _, c := range []struct {
		name       string
		validators []admission.Validator
		locks      bool
	}{
		{"a policy for objects", []admission.Validator{objectPolicy{}}, true},
		{"no policy", nil, false},
	} {
		chain := admission.NewChain(nil, c.validators)
		for _, subresource := range []string{"", "status", "other"} {
			i := resource.Info{
				Verb: resource.VerbUpdate, IsResource: true, Group: "g", Version: "v1", Resource: "things", Name: "x",
				Subresource: subresource,
				Path:        "/things/x/" + subresource,
			}
			object := i
			object.Subresource = ""
			s := New(Options{
				LocksAlone: true, Resource: described, Backend: &storage.Backend{Name: "b"}, Locks: storage.NewLocks(),
				Policies: chain.For(&i), ObjectPolicies: chain.For(&object),
			}, subresource)
			var r storage.Request
			r.SetSubject(&i, described)
			if err := s.Lock(&r, true); err != nil {
				t.Fatal(err)
			}
			if r.IsLocked() != c.locks {
				t.Errorf("%s: an update of '%s' takes the lock of the object: %v", c.name, subresource, r.IsLocked())
			}
			r.Unlock()
		}
	}
}

// TestLockNames: all spellings of a path that a backend may read alike have one lock.
func TestLockNames(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"/notes/a", "/notes/a"},
		{"/notes/a/", "/notes/a"},
		{"/notes/%61", "/notes/a"},
		{"/notes/%61/", "/notes/a"},
		{"/notes/a@b", "/notes/a@b"},
		{"/notes/a%40b", "/notes/a@b"},
		{"/notes/a%2Fb", "/notes/a/b"},
		{"/notes/a%2fb", "/notes/a/b"},
		{"/notes/caf%C3%A9", "/notes/café"},
		{"/notes/caf%c3%a9", "/notes/café"},
		{"/notes/a+b", "/notes/a+b"},
		{"/notes/a%20b", "/notes/a b"},
		{"/notes/A", "/notes/A"},
		{"/notes/%2F", "/notes//"},
		{"/", ""},
	} {
		if got := lockName(c.path); got != c.want {
			t.Errorf("%s: got %s, want %s", c.path, got, c.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = lockName("/notes/a-plain-name/") }); n > 0 {
		t.Errorf("the name of a lock takes %v allocations", n)
	}
}
