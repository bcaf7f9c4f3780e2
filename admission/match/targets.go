package match

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/resource"
)

// TargetsAnnotation is the annotation of policies and bindings whose kinds have no field for references to objects of
// Gateway API. Its value is a list of them in JSON.
const TargetsAnnotation = "admission-gateway.io/target-refs"

// TargetsPath is its place in an object.
var TargetsPath = field.NewPath("metadata", "annotations").Key(TargetsAnnotation)

// The values that a reference may have.
const targetGroup = "gateway.networking.k8s.io"

// TargetsIn reads the annotation; nil if there is none.
func TargetsIn(annotations map[string]string) ([]resource.Target, field.ErrorList) {
	text, found := annotations[TargetsAnnotation]
	if !found {
		return nil, nil
	}
	var refs []resource.TargetRef
	strict, err := kjson.UnmarshalStrict([]byte(text), &refs, kjson.DisallowDuplicateFields,
		kjson.DisallowUnknownFields)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil,
			field.ErrorList{field.Invalid(TargetsPath, text, "must be a list of references in JSON: "+err.Error())}
	}
	var errs field.ErrorList
	for i, r := range refs {
		path := TargetsPath.Index(i)
		if r.Group != targetGroup {
			errs = append(errs, field.NotSupported(path.Child("group"), r.Group, []string{targetGroup}))
		}
		if _, is := resource.TargetOf(r.Kind, r.Namespace, r.Name, r.SectionName); !is {
			errs = append(errs, field.NotSupported(path.Child("kind"), r.Kind,
				[]string{"Gateway", "HTTPRoute", "GRPCRoute"}))
		}
		if r.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
		if r.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		}
	}
	if len(refs) == 0 {
		errs = append(errs, field.Required(TargetsPath,
			"must have a reference; without the annotation all requests are meant"))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return resource.TargetsOf(refs), nil
}

// reaches reports whether the targets of the matcher mean the requests of a route. If the route is not known they may.
func (m *Matcher) reaches(p *resource.RouteRef) bool {
	return len(m.targets) == 0 || p == nil || resource.Cover(m.targets, p)
}

// IsTargeted reports whether the matcher matches requests of some routes only.
func (m *Matcher) IsTargeted() bool { return m != nil && len(m.targets) > 0 }
