// Package exceptions loads the terms of policies from policy files: PolicyExceptions, and rollouts,
// which are a field of the gateway's own kinds and an annotation of all others.
package exceptions

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/terms"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/finding"
)

// fieldPath is the field of the rollout in the gateway's own kinds.
const fieldPath = "spec.rollout"

// The kinds that have the field, and Kubernetes' and Gatekeeper's kinds that have the annotation.
// Constraints, whose kinds templates define, have it too.
var (
	byField      = []string{"ConventionPolicy", "DefaultingPolicy", "RateLimitPolicy", "RegoPolicy"}
	byAnnotation = []string{
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"Assign", "AssignImage", "AssignMetadata", "ModifySet",
	}
)

// Files are the PolicyExceptions of the policy files, and the terms of their policies, for which is
// asked when all files were read.
type Files struct {
	finding.List
	// Now is when the files are read: what has expired by then is warned of.
	Now time.Time

	exceptions []loaded
	plans      []*rollout.Plan
}

// loaded is an exception and its source.
type loaded struct {
	from     *manifest.Object
	read     *terms.PolicyException
	compiled *terms.Exception
}

// Exception takes a PolicyException. It returns nil if it does not compile.
func (f *Files) Exception(o *manifest.Object, p *terms.PolicyException) *terms.Exception {
	compiled, errs := terms.Compile(p)
	f.Fields(o, finding.Error, errs)
	if compiled == nil {
		return nil
	}
	f.exceptions = append(f.exceptions, loaded{o, p, compiled})
	switch {
	case compiled.Expires().IsZero():
		f.At(o, finding.Warning, "spec.expires", "must be set for an exception that is to end: this one never does")
	case compiled.IsOver(f.Now):
		f.At(o, finding.Warning, "spec.expires", "the exception ended at %s, and has no effect", p.Spec.Expires)
	}
	return compiled
}

// Read returns the exceptions as they are written, and their sources.
func (f *Files) Read() iter.Seq2[*manifest.Object, *terms.PolicyException] {
	return func(yield func(*manifest.Object, *terms.PolicyException) bool) {
		for _, e := range f.exceptions {
			if !yield(e.from, e.read) {
				return
			}
		}
	}
}

// Terms returns the terms of a policy whose kind has a field for its rollout; nil if it has none.
func (f *Files) Terms(o *manifest.Object, own *rollout.Spec) admission.Terms {
	return f.termsOf(o, f.Plan(o, own))
}

// TermsByAnnotation returns the terms of a policy, or of a binding, whose rollout is in an annotation;
// nil if it has none.
func (f *Files) TermsByAnnotation(o *manifest.Object) admission.Terms {
	text, path, found := annotation(o)
	if !found {
		return f.termsOf(o, nil)
	}
	spec, err := rollout.Parse(text)
	if err != nil {
		f.At(o, finding.Error, path, "%s", err)
		return nil
	}
	return f.termsOf(o, f.compile(o, spec, path))
}

func (f *Files) termsOf(o *manifest.Object, plan *rollout.Plan) admission.Terms {
	var found []*terms.Exception
	for _, e := range f.exceptions {
		if e.compiled.Names(o.Kind, o.Name) {
			found = append(found, e.compiled)
		}
	}
	return terms.New(plan, found)
}

// Plan compiles the rollout of a policy whose kind has a field for it; nil if it has none.
func (f *Files) Plan(o *manifest.Object, own *rollout.Spec) *rollout.Plan {
	if own == nil {
		return nil
	}
	return f.compile(o, own, fieldPath)
}

func (f *Files) compile(o *manifest.Object, s *rollout.Spec, path string) *rollout.Plan {
	plan, errs := rollout.Compile(s, o.Kind+"/"+o.Name, field.NewPath(path))
	return f.keep(o, plan, errs, path, "the policy is enforced everywhere")
}

// ResourcePlan compiles the rollout of what describes resources. It is named as results are shown.
func (f *Files) ResourcePlan(o *manifest.Object, s *rollout.ResourceSpec, name, path string) *rollout.Plan {
	plan, errs := rollout.CompileResource(s, name, field.NewPath(path))
	return f.keep(o, plan, errs, path, "the description is enforced for all requests")
}

// keep reports what is wrong with a plan, and keeps it.
func (f *Files) keep(o *manifest.Object, plan *rollout.Plan, errs field.ErrorList, path, isOver string) *rollout.Plan {
	for _, err := range errs {
		if inner, is := strings.CutPrefix(err.Field, path+"."); is && strings.HasPrefix(path, "metadata.annotations[") {
			f.At(o, finding.Error, path, "`%s`: %s", inner, finding.BodyOf(err)) // inside of a text
			continue
		}
		f.At(o, finding.Error, err.Field, "%s", finding.BodyOf(err))
	}
	if plan == nil {
		return nil
	}
	f.plans = append(f.plans, plan)
	switch {
	case !plan.Until().IsZero() && !f.Now.Before(plan.Until()) && plan.In(f.Now) == "":
		f.At(o, finding.Warning, path, "the rollout is over since %s: %s", plan.Until().Format(time.RFC3339), isOver)
	case plan.In(f.Now) == "":
		f.At(o, finding.Warning, path, "holds nothing back: %s", isOver)
	}
	return plan
}

// annotation returns the annotation of a rollout and its position.
func annotation(o *manifest.Object) (text, path string, found bool) {
	path = "metadata.annotations[" + rollout.Annotation + "]"
	if !o.IsAnnotated {
		return "", path, false
	}
	annotations, _ := o.At("metadata.annotations")
	n, found := annotations.Get(rollout.Annotation)
	if !found {
		return "", path, false
	}
	return n.Str(), path, true
}

// Check refuses the annotation of a rollout on an object of a kind that does not read it.
func (f *Files) Check(o *manifest.Object) {
	_, path, found := annotation(o)
	group, _ := o.GroupVersion()
	switch {
	case !found || group == constraints.Group || slices.Contains(byAnnotation, o.Kind):
	case slices.Contains(byField, o.Kind):
		f.At(o, finding.Error, path, "must be the field `%s`, which the kind %s has", fieldPath, o.Kind)
	default:
		f.At(o, finding.Error, path, "must not be set: a %s cannot be rolled out", o.Kind)
	}
}

// unexceptable are the kinds that exceptions cannot name, and why not.
var unexceptable = map[string]string{
	"RateLimitPolicy":                  "its own `spec.exemptions` say whom it does not count",
	"APIResource":                      "what a schema, the protection of the status or the contract of an API refuses has no exceptions",
	"CustomResourceDefinition":         "what a schema refuses has no exceptions",
	"OpenAPI":                          "what the contract of an API refuses has no exceptions",
	"ConstraintTemplate":               "an exception is about the constraints of the template",
	"ValidatingAdmissionPolicyBinding": "an exception is about the policy, with all of its bindings",
	"MutatingAdmissionPolicyBinding":   "an exception is about the policy, with all of its bindings",
}

// Finish reports the exceptions that match nothing, of all objects in the files.
func (f *Files) Finish(objects iter.Seq[*manifest.Object]) {
	if len(f.exceptions) == 0 {
		return
	}
	known := map[string]bool{} // though they may not compile
	for o := range objects {
		known[o.Kind+"/"+o.Name] = true
	}
	for _, e := range f.exceptions {
		for i, ref := range e.read.Spec.Policies {
			path := fmt.Sprintf("spec.policies[%d]", i)
			if why := unexceptable[ref.Kind]; why != "" {
				f.At(e.from, finding.Error, path+".kind", "must not be '%s': %s", ref.Kind, why)
				continue
			}
			for j, name := range ref.Names {
				if known[ref.Kind+"/"+name] {
					continue
				}
				f.At(e.from, finding.Warning, fmt.Sprintf("%s.names[%d]", path, j),
					"no %s in the policy files has the name '%s', so that the exception does nothing for it", ref.Kind, name)
			}
		}
	}
}

// Plans returns the rollouts of all policies.
func (f *Files) Plans() []*rollout.Plan { return slices.Clone(f.plans) }

// Exceptions returns the exceptions, in the order of their names.
func (f *Files) Exceptions() []*terms.Exception {
	all := make([]*terms.Exception, len(f.exceptions))
	for i, e := range f.exceptions {
		all[i] = e.compiled
	}
	slices.SortFunc(all, func(a, b *terms.Exception) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}
