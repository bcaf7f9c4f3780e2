package policies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/refusal"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// ErrorTemplate says how the gateway's own refusals are written. Its definition, crds/errortemplates.yaml, says what
// the fields mean and may hold.
type ErrorTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              refusal.Spec `json:"spec"`
}

// errorTemplates are the ErrorTemplates of the files.
type errorTemplates struct{ all map[string]*refusal.Template }

func (e *errorTemplates) take(l *loader, o *manifest.Object, t *ErrorTemplate) {
	compiled := reuse.OfObject(l.kept, &l.findings, o, "template", nil, func(f *findings) *refusal.Template {
		compiled, errs := refusal.Compile(t.Name, &t.Spec, field.NewPath("spec"))
		f.Fields(o, Error, errs)
		return compiled
	})
	if e.all == nil {
		e.all = map[string]*refusal.Template{}
	}
	if e.all[t.Name] = compiled; compiled != nil {
		l.plans.note(o, compiled.Programs())
		l.failing(o, compiled.Programs())
	}
}

// compile implements compiler.
func (e *errorTemplates) compile(l *loader) { l.set.errorTemplates = e.all }

// ErrorTemplate returns the template of a name; nil if there is none.
func (s *Set) ErrorTemplate(name string) *refusal.Template { return s.errorTemplates[name] }

// missingTemplates finds resources that name a template that no file has.
func missingTemplates(resources []loadedResource, set *Set) []Finding {
	var f findings
	var told []*manifest.Object // OpenAPI documents, which say it of many resources at once
	for _, r := range resources {
		name := r.Errors.Template
		if _, found := set.errorTemplates[name]; name == "" || found || slices.Contains(told, r.at.from) {
			continue
		}
		path := "spec.errorTemplate"
		switch r.at.from.Kind {
		case "APIResource":
		case "CustomResourceDefinition":
			path = "metadata.annotations[" + backendPrefix + "error-template]"
		default:
			path, told = r.at.path, append(told, r.at.from)
		}
		f.At(r.at.from, Error, path, "%s", noErrorTemplate(set))
	}
	return f.Found
}

// unwritten finds routes that name a template that no file has.
func (s *Set) unwritten(routes []Route) (found []Finding) {
	for i := range routes {
		r := &routes[i]
		if _, known := s.errorTemplates[r.ErrorTemplate]; r.ErrorTemplate != "" && !known {
			found = append(found, configured(cmp.Or(r.ErrorTemplateAt, "errorTemplate"), Error,
				fmt.Sprintf("'%s', which %s has, %s", r.ErrorTemplate, r.Words(), noErrorTemplate(s))))
		}
	}
	return found
}

// noErrorTemplate says which templates there are.
func noErrorTemplate(s *Set) string {
	names := slices.Sorted(maps.Keys(s.errorTemplates))
	if len(names) == 0 {
		return "must be the name of an ErrorTemplate, and the policy files have none"
	}
	return "must be the name of an ErrorTemplate of the policy files: " + finding.Quoted(names)
}
