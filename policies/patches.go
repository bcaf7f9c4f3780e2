package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel/outcome"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge"
	kschema "github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// patched warns of mutations that always fail, or set what the schema of the objects refuses, as far as the texts in an
// expression prove it.
func patched(f *findings, o *manifest.Object, p *admissionv1.MutatingAdmissionPolicy, kinds *knownKinds) {
	for i, m := range p.Spec.Mutations {
		if m.ApplyConfiguration != nil {
			at := fmt.Sprintf("spec.mutations[%d].applyConfiguration.expression", i)
			misplaced(f, o, at, outcome.Applied(m.ApplyConfiguration.Expression), p, kinds)
		}
		if m.JSONPatch == nil {
			continue
		}
		at := fmt.Sprintf("spec.mutations[%d].jsonPatch.expression", i)
		for _, one := range outcome.Patches(m.JSONPatch.Expression) {
			if problem := malformed(&one); problem != "" {
				f.By(applicability.AlwaysFails, o, Warning, at, "%s: the patch fails", problem)
				continue
			}
			misplaced(f, o, at, []outcome.Patch{one}, p, kinds)
		}
	}
}

// misplaced warns of patches that set what the schemas of the objects do not let be.
func misplaced(f *findings, o *manifest.Object, at string, all []outcome.Patch, p *admissionv1.MutatingAdmissionPolicy,
	kinds *knownKinds) {
	for _, one := range all {
		for _, gvr := range typecheck.Named(p.Spec.MatchConstraints) {
			typ, s := kinds.mergeType(gvr)
			if rule, err := misplacedPatch(&one, typ, s); err != nil {
				f.By(rule, o, Warning, at, "%s", inObjects(err, gvr))
			}
		}
	}
}

// inObjects says of which objects something is wrong.
func inObjects(err error, gvr schema.GroupVersionResource) string {
	return fmt.Sprintf("%s, in objects of '%s' in version '%s'", err, gvr.GroupResource(), gvr.Version)
}

var patchOperations = []string{"add", "remove", "replace", "move", "copy", "test"}

// malformed says why no object can be patched so; "" if the texts do not prove that.
func malformed(p *outcome.Patch) string {
	has := func(name string) bool { return slices.Contains(p.Members, name) }
	switch {
	case !has("op") || p.Op != nil && !slices.Contains(patchOperations, *p.Op):
		said := "nothing"
		if p.Op != nil {
			said = "'" + *p.Op + "'"
		}
		return fmt.Sprintf("`op` must be '%s', not %s", strings.Join(patchOperations, "', '"), said)
	case p.Path != nil && *p.Path != "" && !strings.HasPrefix(*p.Path, "/"):
		return fmt.Sprintf("`path` must begin with '/', not '%s'", *p.Path)
	case p.From != nil && *p.From != "" && !strings.HasPrefix(*p.From, "/"):
		return fmt.Sprintf("`from` must begin with '/', not '%s'", *p.From)
	case p.Op != nil && (*p.Op == "move" || *p.Op == "copy") && !has("from"):
		return fmt.Sprintf("`from` must be set where `op` is '%s'", *p.Op)
	}
	return ""
}

// misplacedPatch says what is wrong with a path, or a value, in objects of a type, and the id of the check that says
// so.
func misplacedPatch(p *outcome.Patch, typ *merge.Type, s *kschema.Schema) (rule string, err error) {
	if p.Path == nil || typ == nil {
		return "", nil
	}
	path := fieldOf(*p.Path)
	if path == nil {
		return "", nil
	}
	if _, err := path.In(typ); err != nil {
		return applicability.UnknownField, err
	}
	if p.Value == nil || p.Op == nil || *p.Op != "add" && *p.Op != "replace" {
		return "", nil
	}
	value, err := json.Marshal(p.Value)
	if err != nil {
		return "", nil // a number that JSON does not have
	}
	if err := path.CheckLiteral(typ, s, value); err != nil {
		return applicability.UnfitValue, fmt.Errorf("sets `%s` to a value that does not fit the field: %w", path, err)
	}
	return "", nil
}

// fieldOf returns the field that a JSON pointer names; nil for an item of a list, and the whole object.
func fieldOf(pointer string) *defaults.Path {
	var text strings.Builder
	for _, name := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if name == "" || name == "-" || strings.Trim(name, "0123456789") == "" || strings.ContainsAny(name, "']") {
			return nil
		}
		fmt.Fprintf(&text, "['%s']", name)
	}
	first, rest, _ := strings.Cut(text.String(), "]")
	path, err := defaults.ParsePath(strings.Trim(first, "['") + rest)
	if err != nil {
		return nil
	}
	return path
}

// assigned warns of an Assign of Gatekeeper's whose location the objects lack, or whose value they cannot have.
func assigned(f *findings, o *manifest.Object, kinds *knownKinds) {
	location, err := defaults.ParsePath(o.Text("spec.location"))
	if err != nil {
		return
	}
	value, hasValue := o.At("spec.parameters.assign.value")
	all, _ := o.At("spec.applyTo")
	for one := all.First(); one.Valid(); one = one.Next() {
		for gvk, r := range kinds.kinds {
			if !lists(one, "groups", gvk.Group) || !lists(one, "versions", gvk.Version) ||
				!lists(one, "kinds", gvk.Kind) {
				continue
			}
			gvr := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: r.Names.Plural}
			typ, s := kinds.mergeType(gvr)
			if typ == nil {
				continue
			}
			if _, err := location.In(typ); err != nil {
				f.By(applicability.UnknownField, o, Warning, "spec.location", "%s", inObjects(err, gvr))
			} else if hasValue {
				if err := location.CheckLiteral(typ, s, value.Raw()); err != nil {
					f.By(applicability.UnfitValue, o, Warning, value.Path(), "does not fit the field: %s",
						inObjects(err, gvr))
				}
			}
		}
	}
}
