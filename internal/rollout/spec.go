// Package rollout says how far a policy is in force: from when on, for which share of requests, and
// in which namespaces. Beyond that a policy is tried: it judges, and refuses nothing.
package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Annotation is the annotation of policies and bindings whose kinds have no field for a rollout. Its
// value is a [Spec] in JSON.
const Annotation = "admission-gateway.io/rollout"

// A Spec says how far a policy is in force, as its author writes it.
type Spec struct {
	// WarnUntil is a time in RFC 3339 before which nothing is enforced; empty is none.
	WarnUntil string `json:"warnUntil,omitempty"`
	// Percent is the share of what is enforced; nil is all.
	Percent *int32 `json:"percent,omitempty"`
	// Namespaces and NamespaceSelector choose the only namespaces in which the policy is enforced: the
	// ones with a name and the ones with labels.
	Namespaces        []string              `json:"namespaces,omitempty"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// Parse reads the value of the annotation: one JSON object without unknown, repeated or misspelt
// fields.
func Parse(text string) (*Spec, error) {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "{") {
		return nil, errors.New(`must be a JSON object, such as {"percent": 10}`)
	}
	s := &Spec{}
	strict, err := kjson.UnmarshalStrict([]byte(trimmed), s, kjson.DisallowDuplicateFields, kjson.DisallowUnknownFields)
	if err == nil && len(strict) > 0 {
		err = errors.Join(strict...)
	}
	if err != nil {
		return nil, fmt.Errorf("must be a JSON object: %w", err)
	}
	return s, nil
}

// A Plan is a compiled Spec. It is immutable, but for its count, and safe for concurrent use.
type Plan struct {
	policy     string
	until      time.Time // zero: enforced at any time
	percent    uint64
	namespaces []string
	selector   labels.Selector // nil: none
	isLocal    bool            // enforced in some namespaces alone
	isSilent   bool            // clients are not warned
	count      *Count
}

// Compile checks and compiles what the author of a policy wrote. The policy is named by its kind and
// name, on which its share depends. With findings the Plan is nil.
func Compile(s *Spec, policy string, path *field.Path) (*Plan, field.ErrorList) {
	p := &Plan{policy: policy, percent: 100, namespaces: slices.Clone(s.Namespaces), count: &Count{}}
	var errs field.ErrorList
	if s.WarnUntil == "" && s.Percent == nil && s.Namespaces == nil && s.NamespaceSelector == nil {
		errs = append(errs, field.Required(path,
			"must have one of `warnUntil`, `percent`, `namespaces` and `namespaceSelector`"))
	}
	if s.WarnUntil != "" {
		var err error
		if p.until, err = Time(s.WarnUntil); err != nil {
			errs = append(errs, field.Invalid(path.Child("warnUntil"), s.WarnUntil, err.Error()))
		}
	}
	if s.Percent != nil {
		if *s.Percent < 0 || *s.Percent > 100 {
			errs = append(errs, field.Invalid(path.Child("percent"), *s.Percent, "must be from 0 to 100"))
		}
		p.percent = uint64(max(*s.Percent, 0))
	}
	p.isLocal = s.Namespaces != nil || s.NamespaceSelector != nil
	for i, name := range s.Namespaces {
		for _, why := range utilvalidation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), name, why))
		}
	}
	if s.NamespaceSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(s.NamespaceSelector)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child("namespaceSelector"), field.OmitValueType{}, err.Error()))
		}
		p.selector = selector
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}

// Time reads a time of an author's, with its zone.
func Time(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, errors.New("must be a time in RFC 3339, such as '2027-01-31T09:00:00Z'")
	}
	return at, nil
}

// The modes of a ResourceSpec.
const (
	// Observe says that clients do not learn of a refusal that was not enforced.
	Observe = "Observe"
	// Warn says that they are warned of it.
	Warn = "Warn"
)

// A ResourceSpec says how far the description of a resource is in force.
type ResourceSpec struct {
	// Mode says whether clients are warned; alone it turns enforcement off. Empty is Warn.
	Mode string `json:"mode,omitempty"`
	Spec `json:",inline"`
}

// CompileResource is Compile for what describes resources.
func CompileResource(s *ResourceSpec, name string, path *field.Path) (*Plan, field.ErrorList) {
	spec := s.Spec
	var errs field.ErrorList
	if s.Mode != "" && s.Mode != Observe && s.Mode != Warn {
		errs = append(errs, field.NotSupported(path.Child("mode"), s.Mode, []string{Observe, Warn}))
	}
	if spec.NamespaceSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("namespaceSelector"),
			"must not be set: an ordinary API has no labels of namespaces"))
	}
	if s.Mode != "" && spec.WarnUntil == "" && spec.Percent == nil && spec.Namespaces == nil {
		spec.Percent = new(int32)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	p, errs := Compile(&spec, name, path)
	if p != nil {
		p.isSilent = s.Mode == Observe
	}
	return p, errs
}

// IsSilent reports whether clients do not learn of what would have been refused.
func (p *Plan) IsSilent() bool { return p.isSilent }

// IsLocal reports whether the plan enforces in some namespaces alone.
func (p *Plan) IsLocal() bool { return p.isLocal }
