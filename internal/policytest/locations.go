package policytest

import (
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

func isWarning(f finding.Finding) bool { return f.Severity != finding.Error }

// policyLocations finds policies and their expressions in files.
type policyLocations struct{ objects map[placed]written }

type placed struct{ kind, name string }

type written struct {
	file   string
	object *manifest.Object
	// fields are the paths of texts, rules those of the rules of schemas.
	fields, rules map[string]string
}

func newPolicyLocations(files *source.Source) *policyLocations {
	p := &policyLocations{objects: map[placed]written{}}
	for _, f := range files.Files {
		if !source.IsManifest(f.Name) {
			continue
		}
		objects, _ := manifest.Read(f.Name, f.Data) // which was read without errors before
		for _, o := range objects {
			at := written{f.Name, o, map[string]string{}, map[string]string{}}
			at.find("", explanation.Parse(o.Document().AppendTo(nil)))
			p.objects[placed{o.Kind, o.Name}] = at
		}
	}
	return p
}

// find notes the places of the texts of an object: of equal texts, the first one.
func (p *written) find(path string, t explanation.Tree) {
	switch t := t.(type) {
	case map[string]any:
		for key, value := range t {
			p.find(explanation.Child(path, key), value)
		}
	case []any:
		for i, value := range t {
			p.find(path+"["+strconv.Itoa(i)+"]", value)
		}
	case string:
		note(p.fields, t, path)
		if strings.HasSuffix(path, ".rule") && strings.Contains(path, "x-kubernetes-validations[") {
			note(p.rules, t, path)
		}
	}
}

// note notes the path of a text, unless it has one that comes before.
func note(paths map[string]string, text, path string) {
	if known, is := paths[text]; !is || path < known {
		paths[text] = path
	}
}

// addRule adds its place to a rule of a schema. Of equal rules it is the first one, by file and place.
func (p *policyLocations) addRule(e *explanation.Expression) {
	for _, at := range p.objects {
		field, isThere := at.rules[e.Text]
		if !isThere {
			continue
		}
		if line := at.object.Line(field); e.File == "" || at.file < e.File || at.file == e.File && line < e.Line {
			e.File, e.Field, e.Line = at.file, field, line
		}
	}
}

// add adds its place to a policy.
func (p *policyLocations) add(of *explanation.Policy) {
	at, found := p.objects[placed{of.Kind, of.Name}]
	if !found {
		return
	}
	of.File, of.Line = at.file, at.object.Line("")
	for i := range of.Expressions {
		e := &of.Expressions[i]
		if e.Field = at.fields[e.Text]; e.Field != "" {
			e.Line = at.object.Line(e.Field)
		}
	}
	for i := range of.Reasons {
		r, about := &of.Reasons[i], at
		if r.Binding != "" {
			if about, found = p.objects[placed{of.Kind + "Binding", r.Binding}]; !found {
				continue
			}
		}
		if r.Field != "" {
			r.File, r.Line = about.file, about.object.Line(r.Field)
		}
	}
}
