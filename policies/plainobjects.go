package policies

import (
	"iter"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/constraints"
)

// plainKinds are kinds that CustomResourceDefinitions in the files define, in groups whose objects would be policies
// otherwise. Their objects are plain ones, to which policies may refer.
type plainKinds map[schema.GroupKind]bool

// plainKindsIn finds the kinds among all objects of the files. What the gateway takes for a policy stays one:
// Gatekeeper's definitions of its own kinds, and of the kinds of its templates, are in what it installs and in what a
// cluster shows.
func plainKindsIn(objects []*manifest.Object, isPolicy func(group, kind string) bool) plainKinds {
	k := plainKinds{}
	for _, o := range objects {
		if group, _ := o.GroupVersion(); group == apiextensionsv1.GroupName && o.Kind == "CustomResourceDefinition" {
			k[schema.GroupKind{Group: o.Text("spec.group"), Kind: o.Text("spec.names.kind")}] = true
		}
	}
	for _, o := range objects {
		if group, _ := o.GroupVersion(); group == constraints.TemplatesGroup && o.Kind == "ConstraintTemplate" {
			delete(k, schema.GroupKind{Group: constraints.Group, Kind: o.Text("spec.crd.spec.names.kind")})
		}
	}
	for kind := range k {
		if isPolicy(kind.Group, kind.Kind) || constraints.IsRefused(kind) {
			delete(k, kind)
		}
	}
	return k
}

// has reports whether objects of a kind are plain ones.
func (k plainKinds) has(o *manifest.Object) bool {
	group, _ := o.GroupVersion()
	return k[schema.GroupKind{Group: group, Kind: o.Kind}]
}

// unlikeConstraints finds objects that look like constraints and are plain ones, if no policy has parameters of
// their kind: their template may be missing.
func (k plainKinds) unlikeConstraints(objects iter.Seq[*manifest.Object], uses []paramUse) []Finding {
	var f findings
	for o := range objects {
		group, _ := o.GroupVersion()
		if group != constraints.Group || !k.has(o) {
			continue
		}
		isParameter := func(u paramUse) bool {
			kind, ok := params.Kind(u.kind)
			return ok && kind.Group == group && kind.Kind == o.Kind
		}
		if !slices.ContainsFunc(uses, isParameter) {
			f.At(o, Warning, "kind", "is no constraint: a CustomResourceDefinition in the policy files defines the kind '%s', and no ConstraintTemplate does", o.Kind)
		}
	}
	return f.Found
}
