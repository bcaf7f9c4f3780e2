package gatekeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	vapmatch "github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// The actions that constraints ask for.
const (
	actionDeny   = "deny"
	actionWarn   = "warn"
	actionDryRun = "dryrun"
	actionScoped = "scoped"
)

// The enforcement points of constraints. The gateway stands in for Gatekeeper's webhook. It also stands
// in for the ValidatingAdmissionPolicies that Gatekeeper makes of templates with expressions.
const (
	pointWebhook = "validation.gatekeeper.sh"
	pointAudit   = "audit.gatekeeper.sh"
	pointGator   = "gator.gatekeeper.sh"
	pointPolicy  = "vap.k8s.io"
	pointAll     = "*"
)

// Name implements admission.Policy. Constraints are ordered by kind and name.
func (c *Constraint) Name() string { return c.template.kind + "/" + c.name }

// Rules implements admission.Policy.
func (c *Constraint) Rules() []admission.Rule { return c.rules }

// FailurePolicy implements admission.Policy.
func (c *Constraint) FailurePolicy() admission.FailurePolicy { return admission.Fail }

// NeedsOld implements admission.Policy.
func (c *Constraint) NeedsOld() bool {
	return c.match.NeedsOld() || c.template.engine.readsOld() || c.terms != nil && c.terms.NeedsOld()
}

// CanPrefilter implements admission.Prefilter.
func (c *Constraint) CanPrefilter() bool { return c.match.CanPrefilter() }

// IsFilteredOut implements admission.Prefilter.
func (c *Constraint) IsFilteredOut(ctx context.Context, a *admission.Attributes) bool {
	return c.match.IsFilteredOut(ctx, a)
}

// Excludes implements admission.Narrower.
func (c *Constraint) Excludes(i *resource.Info, _ admission.Operation) bool {
	return c.match.Excludes(i)
}

// References implements admission.Referrer.
func (c *Constraint) References() admission.References {
	r := c.match.References()
	r.Namespaces = r.Namespaces || c.template.engine.readsNamespace()
	return r
}

// Applicabilities implements admission.Explainer.
func (c *Constraint) Applicabilities(a *admission.Attributes) []resource.Applicability {
	o := admission.ApplicabilityOf(c.name, c.rules, a)
	o.Kind = c.template.kind
	return []resource.Applicability{c.match.Applicability(a.Info, o)}
}

// Reasons implements admission.Reasoner.
func (c *Constraint) Reasons(ctx context.Context, a *admission.Attributes) []admission.Reason {
	return c.match.Reasons(ctx, "spec.match", match.Objects(nil, a))
}

// IsIdle reports whether the constraint asks for nothing at the gateway's enforcement points.
func (c *Constraint) IsIdle() bool { return len(c.actions) == 0 }

// CompileConstraint compiles a constraint of a template. The document becomes the constraint's. With
// findings the constraint is nil.
func CompileConstraint(t *Template, name string, d *document.Document,
	resources match.Resources) (*Constraint, field.ErrorList) {
	if errs := t.complete(d); len(errs) > 0 {
		return nil, errs
	}
	c := &Constraint{template: t, name: name, object: d}
	spec, path := &ConstraintSpec{EnforcementAction: actionDeny}, field.NewPath("spec")
	if n := c.spec(); n.Valid() {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(n.AppendRaw(nil), spec); err != nil {
			return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
		}
	}
	var errs field.ErrorList
	c.match, errs = match.Compile(&spec.Match, path.Child("match"))
	errs = append(errs, c.setActions(spec, path)...)
	if len(errs) > 0 {
		return nil, errs
	}
	c.setRules(&spec.Match, resources)
	if e, ok := t.engine.(*regoEngine); ok {
		if err := e.bind(c); err != nil {
			return nil, field.ErrorList{field.Invalid(path.Child("parameters"), field.OmitValueType{}, err.Error())}
		}
	}
	d.Compact()
	return c, nil
}

// complete sets the defaults of a constraint and validates it by its template's schema, which knows
// all of its fields.
func (t *Template) complete(d *document.Document) (errs field.ErrorList) {
	defaults.Apply(d, t.schema)
	unknown := schema.Unknown{}
	if err := t.schema.Prune(d, &unknown); err != nil {
		if wrong, is := errors.AsType[*field.Error](err); is {
			return field.ErrorList{wrong}
		}
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if unknown.Any() {
		return t.unknownFields(&unknown)
	}
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	result := t.schema.Validate(frame, d.Root(), document.Node{})
	if errs = result.Errors; !result.Valid() && len(errs) == 0 {
		errs = append(errs, field.Invalid(nil, field.OmitValueType{}, fmt.Sprint(result.Err)))
	}
	return errs
}

// unknownFields refuses the fields that the template does not know.
func (t *Template) unknownFields(unknown *schema.Unknown) (errs field.ErrorList) {
	for _, message := range unknown.Messages() {
		path := strings.Trim(strings.TrimPrefix(message, "unknown field "), `"`)
		err := field.Invalid(nil, field.OmitValueType{},
			fmt.Sprintf("must not be set: constraints of the kind '%s' have no such field", t.kind))
		err.Field = path
		errs = append(errs, err)
	}
	return errs
}

// setActions checks the enforcement actions, and keeps what the gateway has to do.
func (c *Constraint) setActions(s *ConstraintSpec, path *field.Path) (errs field.ErrorList) {
	c.action = s.EnforcementAction
	switch c.action {
	case actionDeny, actionWarn, actionDryRun:
		c.actions = []string{c.action}
		return nil
	case actionScoped:
	default:
		return vapmatch.OneOf(c.action, path.Child("enforcementAction"), actionDeny, actionDryRun, actionScoped,
			actionWarn)
	}
	path = path.Child("scopedEnforcementActions")
	if s.ScopedEnforcementActions == nil {
		return field.ErrorList{field.Required(path, "must be set for the enforcementAction scoped")}
	}
	for i, scoped := range s.ScopedEnforcementActions {
		errs = append(errs, vapmatch.OneOf(scoped.Action, path.Index(i).Child("action"), actionDeny, actionDryRun,
			actionWarn)...)
		points := path.Index(i).Child("enforcementPoints")
		if len(scoped.EnforcementPoints) == 0 {
			errs = append(errs, field.Required(points, "must name an enforcement point"))
		}
		for j, point := range scoped.EnforcementPoints {
			errs = append(errs, vapmatch.OneOf(point.Name, points.Index(j).Child("name"), pointAll, pointAudit,
				pointGator, pointPolicy, pointWebhook)...)
			if c.isEnforcedAt(point.Name) && !slices.Contains(c.actions, scoped.Action) {
				c.actions = append(c.actions, scoped.Action)
			}
		}
	}
	return errs
}

func (c *Constraint) isEnforcedAt(point string) bool {
	return point == pointWebhook || point == pointAll || point == pointPolicy && c.template.hasCEL
}

// setRules says under which rules the constraint is found. Of a deletion the stored object is all that
// there is.
func (c *Constraint) setRules(s *match.Spec, resources match.Resources) {
	if c.IsIdle() {
		return
	}
	c.rules = s.Rules(c.template.operations, resources)
	if c.template.operations&admission.Delete == 0 || c.NeedsOld() {
		return
	}
	for _, r := range c.rules {
		r.Operations, r.NeedsOld = admission.Delete, true
		c.rules = append(c.rules, r)
	}
}

// matches reports whether the constraint matches the request: about its object, or the one that is
// stored.
func (c *Constraint) matches(ctx context.Context, q *request) (bool, error) {
	for i := range q.objects {
		if matches, err := c.match.Matches(ctx, &q.objects[i]); matches || err != nil {
			return matches, err
		}
	}
	return false, nil
}

// message begins with the name of the constraint.
func (c *Constraint) message(of string) string {
	var b strings.Builder
	b.Grow(len(c.name) + len(of) + 3)
	b.WriteByte('[')
	b.WriteString(c.name)
	b.WriteString("] ")
	b.WriteString(of)
	return b.String()
}
