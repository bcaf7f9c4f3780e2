package policies

import (
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	schemaruntime "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/natives"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// knownKinds are the kinds of the policy files and of Kubernetes itself, for the types of
// expressions.
type knownKinds struct {
	mu        sync.Mutex   // makes each type once
	kept      *reuse.Store // of types
	resources map[schemaruntime.GroupVersionResource]*loadedResource
	kinds     map[schemaruntime.GroupVersionKind]*loadedResource
}

// nativeType is the key of the type of one of Kubernetes' own kinds, describedType the key of the
// type of a kind of the files, whose schema is kept too.
type (
	nativeType    schemaruntime.GroupVersionKind
	describedType struct {
		props    *apiextensionsv1.JSONSchemaProps
		kind     string
		envelope bool
	}
)

// knownKinds returns the kinds that objects so far have described.
func (l *loader) knownKinds() *knownKinds {
	k := &knownKinds{
		kept:      l.kept,
		resources: make(map[schemaruntime.GroupVersionResource]*loadedResource, len(l.resources)),
		kinds:     make(map[schemaruntime.GroupVersionKind]*loadedResource, len(l.resources)),
	}
	for i := range l.resources {
		r := &l.resources[i]
		gvr := schemaruntime.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Names.Plural}
		if r.Operation != nil && r.Operation.Subresource != "" {
			continue
		}
		if k.resources[gvr] != nil {
			r = &loadedResource{Resource: r.Resource} // of several kinds of bodies nothing is known
		}
		k.resources[gvr] = r
		if r.Operation != nil {
			continue
		}
		k.kinds[schemaruntime.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Names.Kind}] = r
	}
	return k
}

// Resource implements typecheck.Kinds.
func (k *knownKinds) Resource(gvr schemaruntime.GroupVersionResource) (typecheck.Kind, bool) {
	if r, ok := k.resources[gvr]; ok {
		return k.of(r), true
	}
	for kind, n := range natives.Kinds {
		if kind.Group == gvr.Group && n.Plural == gvr.Resource {
			return k.native(kind.WithVersion(gvr.Version))
		}
	}
	return typecheck.Kind{}, false
}

// Kind implements typecheck.Kinds.
func (k *knownKinds) Kind(gvk schemaruntime.GroupVersionKind) (typecheck.Kind, bool) {
	if r, ok := k.kinds[gvk]; ok {
		return k.of(r), true
	}
	return k.native(gvk)
}

// native is one of Kubernetes' own kinds.
func (k *knownKinds) native(gvk schemaruntime.GroupVersionKind) (typecheck.Kind, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := reuse.Of(k.kept, nativeType(gvk), func() *cel.ObjectType {
		return cel.NewObjectType(gvk.Kind, func() *spec.Schema { return kubernetes.Published(gvk) }, true).Keep()
	})
	return typecheck.Kind{GroupVersionKind: gvk, Type: t}, t != nil
}

func (k *knownKinds) of(r *loadedResource) typecheck.Kind {
	props := r.compiled.props
	if r.showsItems() && props != nil && props.Items != nil {
		props = props.Items.Schema
	}
	key := describedType{props, r.Names.Kind, r.Envelope == resource.Kubernetes}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := reuse.Of(k.kept, key, func() *cel.ObjectType { return typeOf(key.kind, props, key.envelope) })
	return typecheck.Kind{
		GroupVersionKind: schemaruntime.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Names.Kind},
		Type:             t,
		Own:              true,
		Unfilled:         r.compiled.unfilled,
	}
}

func typeOf(kind string, props *apiextensionsv1.JSONSchemaProps, envelope bool) *cel.ObjectType {
	if props == nil || props.Type != "object" {
		return nil
	}
	return cel.NewObjectType(kind, func() *spec.Schema { return schema.Published(props, envelope) }, envelope)
}

// reviewPolicy reviews the expressions of a policy. A review that was made before stands as long as the kinds that it
// asked for are the same.
func reviewPolicy(
	kept *reuse.Store, found *findings, o *manifest.Object, states []string, kinds typecheck.Kinds,
	make func([]string, typecheck.Kinds) ([]typecheck.Warning, error),
) {
	key := reviewKey{o.Sum(), joined(states)}
	r, isKept := reuse.Find[*reviewed](kept, key)
	if !isKept || !r.isOf(kinds) {
		asked := &askedKinds{kinds: kinds}
		r = &reviewed{}
		r.warnings, r.err = make(states, asked)
		r.asked = asked.all
		reuse.Keep(kept, key, r)
	}
	if r.err != nil {
		found.At(o, Warning, "spec", "the types of expressions cannot be checked: %v", r.err)
	}
	for _, w := range r.warnings {
		switch {
		case w.ForAll: // the rest of the expression is checked when that is mended
			found.By(applicability.AlwaysFails, o, Error, w.Field, "%s", w.Fails)
		case w.Fails != "":
			found.By(applicability.AlwaysFails, o, Warning, w.Field, "%s", w.Fails)
			if w.Rest != "" {
				found.At(o, Warning, w.Field, "%s", w.Rest)
			}
		default:
			found.At(o, Warning, w.Field, "%s", w.Text)
		}
	}
}

// reviewKey is the key of the review of a policy.
type reviewKey struct {
	sum    manifest.Sum
	states string
}

// reviewed is what was found in reviewing a policy, and what kinds were asked for.
type reviewed struct {
	asked    []askedKind
	warnings []typecheck.Warning
	err      error
}

// isOf reports whether the review would be the same if it asked kinds.
func (r *reviewed) isOf(kinds typecheck.Kinds) bool {
	return !slices.ContainsFunc(r.asked, func(a askedKind) bool { return a != a.again(kinds) })
}

// askedKind is a question for a kind, by one of both, and its answer.
type askedKind struct {
	resource schemaruntime.GroupVersionResource
	kind     schemaruntime.GroupVersionKind
	answer   typecheck.Kind
	isKnown  bool
}

// again asks the same question.
func (a askedKind) again(kinds typecheck.Kinds) askedKind {
	if a.resource != (schemaruntime.GroupVersionResource{}) {
		a.answer, a.isKnown = kinds.Resource(a.resource)
	} else {
		a.answer, a.isKnown = kinds.Kind(a.kind)
	}
	return a
}

// askedKinds takes down what is asked.
type askedKinds struct {
	kinds typecheck.Kinds
	all   []askedKind
}

// Resource implements typecheck.Kinds.
func (k *askedKinds) Resource(gvr schemaruntime.GroupVersionResource) (typecheck.Kind, bool) {
	return k.ask(askedKind{resource: gvr})
}

// Kind implements typecheck.Kinds.
func (k *askedKinds) Kind(gvk schemaruntime.GroupVersionKind) (typecheck.Kind, bool) {
	return k.ask(askedKind{kind: gvk})
}

func (k *askedKinds) ask(a askedKind) (typecheck.Kind, bool) {
	a = a.again(k.kinds)
	k.all = append(k.all, a)
	return a.answer, a.isKnown
}
