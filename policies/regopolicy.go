package policies

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/modules"
)

// loadedRego is a RegoPolicy and where it comes from.
type loadedRego struct {
	from *manifest.Object
	spec *rego.RegoPolicy
}

// regoFiles are the RegoPolicies of the files, and the modules beside them.
type regoFiles struct {
	policies []loadedRego
	modules  *modules.Files
	print    func(file string, line int, text string)
}

func (l *loader) regoPolicy(o *manifest.Object, p *rego.RegoPolicy) {
	l.rego.policies = append(l.rego.policies, loadedRego{o, p})
}

// compile compiles the RegoPolicies with their modules.
func (r *regoFiles) compile(l *loader) []*rego.Policy {
	states := namesOf(l.sources)
	var all []*rego.Policy
	for _, p := range r.policies {
		l.paramUses = append(l.paramUses, paramUse{p.from, p.spec.Spec.ParamKind, p.spec.Spec.ParamRef})
		if compiled := r.compilePolicy(l, p, states); compiled != nil {
			all = append(all, compiled)
		}
	}
	for _, name := range r.modules.Unused() {
		l.Found = append(l.Found, Finding{File: name, Severity: Warning, Message: "no RegoPolicy is in this folder or above, so that the file is not used"})
	}
	return all
}

func (r *regoFiles) compilePolicy(l *loader, p loadedRego, states []string) *rego.Policy {
	spec := &p.spec.Spec
	folder := filepath.Dir(p.from.File)
	options := rego.Options{V0: spec.RegoVersion == "V0", Hosts: spec.AllowedHosts}
	var found *modules.Compiled
	if spec.Rego == "" {
		found = r.modules.Folder(folder, options)
	} else {
		m := rego.Module{File: p.from.File, Line: p.from.Line("spec.rego"), Source: []byte(spec.Rego)}
		if strings.Contains(strings.TrimRight(spec.Rego, "\n"), "\n") {
			m.Line++ // the text stands below its key
		}
		found = r.modules.Text(m, options)
	}
	l.regoFound(found.Errors, Error)
	l.regoFound(found.Warnings, Warning)
	switch {
	case found.Count == 0:
		l.At(p.from, Error, "spec.rego", "Required value: there is no module in '%s' either: must have a text, or files that end in '.rego' beside the policy", folder)
		return nil
	case found.Program == nil:
		return nil
	}
	for _, name := range found.Program.States() {
		if !slices.Contains(states, name) {
			l.At(p.from, Error, "spec", "a module reads data.state.%s: no StateSource has that name", name)
		}
	}
	compiled, errs := rego.CompilePolicy(p.spec, rego.Source{Program: found.Program, States: states})
	l.Fields(p.from, Error, errs)
	if compiled != nil {
		l.plans.note(p.from, compiled.Programs())
		l.plans.noteModules(p.from, found.Program)
	}
	return compiled
}

// regoFound records what was found in modules.
func (l *loader) regoFound(found rego.Errors, severity Severity) {
	for _, e := range found {
		f := Finding{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Severity: severity}
		if !slices.Contains(l.Found, f) {
			l.Found = append(l.Found, f)
		}
	}
}
