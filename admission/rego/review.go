package rego

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/rego/plan"
	"github.com/admission-gateway/gateway/internal/document"
)

// reviewMembers are the members of a review.
var reviewMembers = [...]string{
	"kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
	"operation", "userInfo", "object", "oldObject", "dryRun", "options",
}

// A review is the value of input.review. Its members are made as they are read.
type review struct {
	attributes           *admission.Attributes
	as                   schema.GroupVersionResource
	kind                 schema.GroupVersionKind
	object, old, options Value
	more                 []Member // in place of those above, and beside them

	read  [len(reviewMembers)]Value
	known [len(reviewMembers)]bool
	made  *ast.Term
	keys  []*ast.Term // of made
}

// ReviewOf makes the value that modules see as input.review: the request of an AdmissionReview, as
// kube-apiserver sends it to webhooks. The resource is the one that the policy's rules name; the
// object is converted to its version. The value is made once for all policies. It reads the request:
// it is for the goroutine of the request alone, as long as the objects do not change.
func ReviewOf(a *admission.Attributes, as schema.GroupVersionResource) (Value, error) {
	m := madeOf(a, as)
	r := &m.review
	if r.attributes != nil {
		return Value{part: r}, nil
	}
	object, old, kind := a.Object, a.Old, a.Kind()
	if as != a.Info.GroupVersionResource() {
		name := kind.Kind
		var err error
		if object, name, err = converted(a, object, as, name); err != nil {
			return Value{}, err
		}
		if old, name, err = converted(a, old, as, name); err != nil {
			return Value{}, err
		}
		kind = a.KindAs(as, name)
	}
	var err error
	if r.object, err = m.readings[0].begin(object, &m.meter); err != nil {
		return Value{}, err
	}
	if r.old, err = m.readings[1].begin(old, &m.meter); err != nil {
		return Value{}, err
	}
	if r.options, err = optionsOf(a); err != nil {
		return Value{}, err
	}
	m.body = r.object
	m.shared.Begin(MemoryOf(a))
	r.attributes, r.as, r.kind = a, as, kind
	return Value{part: r}, nil
}

// With returns a review, or another object, with a member, in place of the one of the same name.
func (v Value) With(m Member) (Value, error) {
	was, ok := v.part.(*review)
	if !ok {
		return Merge(v, Object(m))
	}
	r := *was
	r.more = slices.DeleteFunc(slices.Clone(was.more), func(other Member) bool { return other.Name == m.Name })
	r.more = append(r.more, m)
	r.made, r.keys = nil, nil
	return Value{part: &r}, nil
}

// member returns a member; no value if there is none.
func (r *review) member(name string) Value {
	for _, m := range r.more {
		if m.Name == name {
			return m.Value
		}
	}
	i := slices.Index(reviewMembers[:], name)
	if i < 0 {
		return Value{}
	}
	if !r.known[i] {
		r.read[i], r.known[i] = r.make(name), true
	}
	return r.read[i]
}

func (r *review) make(name string) Value {
	a := r.attributes
	own := a.Info.GroupVersionResource()
	switch name {
	case "kind":
		return groupVersion(r.kind.GroupVersion(), "kind", r.kind.Kind)
	case "resource":
		return groupVersion(r.as.GroupVersion(), "resource", r.as.Resource)
	case "requestKind":
		return groupVersion(a.Kind().GroupVersion(), "kind", a.Kind().Kind)
	case "requestResource":
		return groupVersion(own.GroupVersion(), "resource", own.Resource)
	case "subResource", "requestSubResource":
		return optional(a.Info.Subresource)
	case "name":
		return optional(a.Name())
	case "namespace":
		return optional(a.RequestNamespace())
	case "operation":
		return Text(a.Operation.String())
	case "userInfo":
		return userOf(a)
	case "object":
		return r.object
	case "oldObject":
		return r.old
	case "dryRun":
		return Flag(a.DryRun)
	case "options":
		return r.options
	}
	return Value{}
}

// Kind implements plan.Part.
func (r *review) Kind() plan.Kind { return plan.Object }

// ID implements plan.Part.
func (r *review) ID() int { return 0 }

// Get implements plan.Part.
func (r *review) Get(key *ast.Term) plan.Value {
	name, ok := key.Value.(ast.String)
	if !ok {
		return plan.Value{}
	}
	return r.member(string(name)).seen()
}

// Whole implements plan.Part.
func (r *review) Whole() *ast.Term {
	if r.made != nil {
		return r.made
	}
	members := make([]Member, 0, len(reviewMembers)+len(r.more))
	for _, name := range reviewMembers {
		members = append(members, Member{name, r.member(name)})
	}
	for _, m := range r.more {
		if !slices.Contains(reviewMembers[:], m.Name) {
			members = append(members, Member{m.Name, r.member(m.Name)})
		}
	}
	r.made = Object(members...).term
	r.keys = r.made.Value.(ast.Object).Keys()
	return r.made
}

// Len implements plan.Part.
func (r *review) Len() int {
	r.Whole()
	return len(r.keys)
}

// Key implements plan.Part.
func (r *review) Key(i int) *ast.Term {
	r.Whole()
	return r.keys[i]
}

// At implements plan.Part.
func (r *review) At(i int) plan.Value { return r.Get(r.Key(i)) }

func (r *review) err() error { return cmp.Or(r.object.err(), r.old.err()) }

// converted returns an object as the resource has it; nil if there is none.
func converted(a *admission.Attributes, d *document.Document, as schema.GroupVersionResource,
	kind string) (*document.Document, string, error) {
	if d == nil || a.Lookup == nil {
		return d, kind, nil
	}
	return a.Lookup.Convert(d, as)
}

// optionsOf are the options of the operation; null if there are none.
func optionsOf(a *admission.Attributes) (Value, error) {
	if a.Options == nil {
		return Null, nil
	}
	options, err := a.Options.Options()
	if err != nil || !options.Valid() {
		return Null, err
	}
	return ValueOf(options)
}

// optional is a text that is left out if it is empty.
func optional(s string) Value {
	if s == "" {
		return Value{}
	}
	return Text(strings.Clone(s))
}

func groupVersion(gv schema.GroupVersion, name, of string) Value {
	return Object(Member{"group", Text(strings.Clone(gv.Group))}, Member{"version", Text(strings.Clone(gv.Version))},
		Member{name, Text(strings.Clone(of))})
}

// userOf is the user as Kubernetes' UserInfo.
func userOf(a *admission.Attributes) Value {
	if a.User == nil {
		return Object()
	}
	u := a.User
	members := []Member{{"username", optional(u.Name)}, {"uid", optional(u.UID)}}
	if len(u.Groups) > 0 {
		members = append(members, Member{"groups", texts(u.Groups)})
	}
	if len(u.Extra) > 0 {
		var extra []Member
		for name, values := range u.Extra {
			extra = append(extra, Member{strings.Clone(name), texts(values)})
		}
		members = append(members, Member{"extra", Object(extra...)})
	}
	return Object(members...)
}

func texts(all []string) Value {
	items := make([]Value, len(all))
	for i, s := range all {
		items[i] = Text(strings.Clone(s))
	}
	return List(items...)
}
