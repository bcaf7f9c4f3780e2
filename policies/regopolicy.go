package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
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

// regoPolicies are the RegoPolicies of the files, and the modules beside them.
type regoPolicies struct {
	policies []loadedRego
	modules  *modules.Files
}

func (r *regoPolicies) take(_ *loader, o *manifest.Object, p *rego.RegoPolicy) {
	r.policies = append(r.policies, loadedRego{o, p})
}

// compile implements compiler. The policies are compiled with their modules.
func (r *regoPolicies) compile(l *loader) {
	states := l.stateNames()
	r.modules = modules.New(l.source.Files, l.gateway.Print)
	for _, p := range r.policies {
		l.paramUses = append(l.paramUses, paramUse{p.from, p.spec.Spec.ParamKind, p.spec.Spec.ParamRef})
		compiled := r.compilePolicy(l, p, states)
		if compiled == nil {
			continue
		}
		if compiled.Changes() {
			l.mutators = append(l.mutators, rego.Mutator{Policy: compiled})
		}
		if compiled.IsValidating() {
			l.validators = append(l.validators, compiled)
		}
	}
	for _, name := range r.modules.Unused() {
		l.Found = append(l.Found, Finding{File: name, Severity: Warning, Message: "no RegoPolicy is in this folder or above, so that the file is not used"})
	}
}

func (r *regoPolicies) compilePolicy(l *loader, p loadedRego, states []string) *rego.Policy {
	spec := &p.spec.Spec
	if spec.Bundle != "" {
		return r.compileBundled(l, p, states)
	}
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
	return r.program(l, p, rego.Source{Program: found.Program, States: states})
}

// compileBundled compiles a policy whose modules are in a bundle. Until that was loaded, the policy
// fails for each request that it is about.
func (r *regoPolicies) compileBundled(l *loader, p loadedRego, states []string) *rego.Policy {
	spec := &p.spec.Spec
	from := rego.Source{States: states, Usable: func() error { return errUnknownBundle }, Origin: rego.Origin{Bundle: spec.Bundle}}
	b, ok := l.gateway.Bundles[spec.Bundle]
	switch {
	case ok:
		from.Usable = b.Usable
	case l.gateway.Bundles != nil:
		known := "it has none"
		if len(l.gateway.Bundles) > 0 {
			known = quoted(slices.Sorted(maps.Keys(l.gateway.Bundles)))
		}
		l.At(p.from, Error, "spec.bundle", "must be the name of a bundle of the configuration: %s", known)
		return nil
	}
	if b.Bundle != nil {
		found := r.modules.Bundle(spec.Bundle, filepath.Dir(p.from.File), b.Bundle, rego.Options{Hosts: spec.AllowedHosts})
		l.regoFound(found.Errors, Error)
		l.regoFound(found.Warnings, Warning)
		switch {
		case found.Count == 0:
			l.At(p.from, Error, "spec.bundle", "the bundle '%s' has no module", spec.Bundle)
			return nil
		case found.Program == nil:
			return nil
		}
		from.Program, l.bundles[spec.Bundle] = found.Program, b.Bundle.Sum
		from.Origin.Revision = b.Bundle.Revision
	}
	return r.program(l, p, from)
}

// errUnknownBundle is the failure of a policy that was compiled without a configuration.
var errUnknownBundle = errors.New("the bundle of the policy is not known")

// program compiles a policy whose modules were compiled.
func (r *regoPolicies) program(l *loader, p loadedRego, from rego.Source) *rego.Policy {
	if from.Program != nil && p.spec.Spec.BuiltinErrors == rego.UndefinedErrors {
		l.regoFound(from.Program.Relaxable(), Warning)
	}
	if from.Program != nil {
		l.modulesRead(from.Program.RequestReads())
		for _, name := range from.Program.States() {
			if !slices.Contains(from.States, name) {
				l.At(p.from, Error, "spec", "a module reads data.state.%s: no StateSource has that name", name)
			}
		}
	}
	compiled, errs := rego.CompilePolicy(p.spec, from)
	l.Fields(p.from, Error, errs)
	if compiled != nil {
		compiled.Govern(l.terms.Terms(p.from, p.spec.Spec.Rollout))
		l.plans.note(p.from, compiled.Programs())
		l.reads.expressions(p.from, compiled.Programs())
		if from.Program != nil {
			l.plans.noteModules(p.from, from.Program)
			l.plans.noteRules(p.from, compiled.Queries()...)
		}
	}
	return compiled
}

// hashWith is the hash of the files, and of the bundles that policies name.
func hashWith(files string, bundles map[string]string) string {
	if len(bundles) == 0 {
		return files
	}
	all := sha256.New()
	_, _ = fmt.Fprintln(all, files) // a hash takes everything
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		_, _ = fmt.Fprintln(all, name, bundles[name])
	}
	return hex.EncodeToString(all.Sum(nil))
}

// regoFound records what was found in modules.
func (l *loader) regoFound(found rego.Errors, severity Severity) {
	for _, e := range found {
		if f := l.regoFinding(e, severity); !slices.Contains(l.Found, f) {
			l.Found = append(l.Found, f)
		}
	}
}

// regoFinding returns the finding about a place in a module.
func (l *loader) regoFinding(e rego.Error, severity Severity) Finding {
	f := Finding{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Severity: severity}
	if text, ok := l.texts[e.File]; ok { // the module is in a policy
		f.Point(text, e.Text, e.Column)
	} else if e.Column > 0 {
		f.Excerpt = e.Text
	}
	return f
}
