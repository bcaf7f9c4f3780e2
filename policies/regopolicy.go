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

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/modules"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// loadedRego is a RegoPolicy and its source.
type loadedRego struct {
	from *manifest.Object
	spec *rego.RegoPolicy
}

// regoPolicies are the RegoPolicies of the files, and the modules beside them.
type regoPolicies struct {
	policies []loadedRego
	modules  *modules.Files
}

func (r *regoPolicies) take(l *loader, o *manifest.Object, p *rego.RegoPolicy) {
	l.useTargets(o, p.Spec.TargetRefs)
	r.policies = append(r.policies, loadedRego{o, p})
}

// compile implements compiler. The policies are compiled with their modules.
func (r *regoPolicies) compile(l *loader) {
	states, kinds := l.stateNames(), l.knownKinds()
	r.modules = modules.New(l.source.Files, l.gateway.Print)
	l.set.logsDecisions = l.set.logsDecisions || len(r.policies) > 0
	for _, p := range r.policies {
		if l.isStopped() {
			return
		}
		if p.spec.Spec.Bundle != "" {
			l.set.bundles = append(l.set.bundles, p.spec.Spec.Bundle)
		}
		l.paramUses = append(l.paramUses, paramUse{p.from, p.spec.Spec.ParamKind, p.spec.Spec.ParamRef})
		compiled := r.compilePolicy(l, p, states, kinds)
		if compiled == nil {
			continue
		}
		if compiled.Changes() && !compiled.IsValidating() {
			if !l.mayBeUnused(p.from) {
				l.Found = append(l.Found,
					applicability.CanMatchWrites(p.from, "the rules change objects, and a deletion has none")...)
			}
		}
		if compiled.Changes() {
			l.mutators = append(l.mutators, rego.Mutator{Policy: compiled})
		}
		if compiled.IsValidating() {
			l.validators = append(l.validators, compiled)
		}
	}
	for _, name := range r.modules.Unused() {
		l.Found = append(l.Found,
			Finding{File: name, Severity: Warning,
				Message: "no RegoPolicy is in this folder or above, so that the file is not used"})
	}
}

// compilePolicy returns a policy with its modules; nil if something is wrong.
func (r *regoPolicies) compilePolicy(l *loader, p loadedRego, states []string, kinds *knownKinds) *rego.Policy {
	spec := &p.spec.Spec
	from, folder := rego.Source{States: states}, filepath.Dir(p.from.File)
	if len(spec.AllowedHosts) > 0 {
		l.set.asking = append(l.set.asking, p.from.Name)
		if l.gateway.IsOffline {
			l.At(p.from, Error, "spec.allowedHosts", "must be empty: policies that are only tried have no network")
			return nil
		}
	}
	options := rego.Options{V0: spec.RegoVersion == "V0", Hosts: spec.AllowedHosts,
		Lenient: spec.BuiltinErrors == rego.UndefinedErrors}
	var unit *modules.Unit
	missing := Finding{Field: "spec.rego", Message: fmt.Sprintf(
		"Required value: there is no module in '%s' either: must have a text, or files that end in '.rego' beside the policy", folder)}
	switch {
	case spec.Bundle != "":
		b, ok := r.bundle(l, p)
		if !ok {
			return nil
		}
		from.Usable, from.Origin = b.Usable, rego.Origin{Bundle: spec.Bundle}
		if b.Bundle != nil {
			l.bundles[spec.Bundle], from.Origin.Revision = b.Bundle.Sum, b.Bundle.Revision
			unit = r.modules.Bundle(spec.Bundle, folder, b.Bundle,
				rego.Options{Hosts: spec.AllowedHosts, Lenient: options.Lenient})
			missing = Finding{Field: "spec.bundle", Message: fmt.Sprintf("the bundle '%s' has no module", spec.Bundle)}
		}
	case spec.Rego == "":
		unit = r.modules.Folder(folder, options)
	default:
		m := rego.Module{File: p.from.File, Line: p.from.Line("spec.rego"), Source: []byte(spec.Rego)}
		if strings.Contains(strings.TrimRight(spec.Rego, "\n"), "\n") {
			m.Line++ // the text stands below its key
		}
		unit = r.modules.Text(m, options)
	}
	key := regoKey{states: joined(states), origin: from.Origin}
	if unit != nil {
		key.modules = unit.Sum
	}
	c := reuse.OfObject(l.kept, &l.findings, p.from, "policy", key, func(f *findings) compiledRego {
		if unit == nil {
			return compileRego(f, p, from)
		}
		found := unit.Compile()
		if found.Count == 0 {
			f.At(p.from, Error, missing.Field, "%s", missing.Message)
		}
		if found.Count == 0 || found.Program == nil {
			return compiledRego{errors: found.Errors, warnings: found.Warnings}
		}
		from.Program = found.Program
		c := compileRego(f, p, from)
		c.errors, c.warnings = found.Errors, slices.Concat(found.Warnings, c.warnings)
		return c
	})
	l.regoFound(&l.findings, "", c.errors, Error)
	isMeant := l.mayBeUnused(p.from)
	if !isMeant {
		l.regoFound(&l.findings, applicability.AlwaysFails, c.failing, constantsOf(spec))
		l.parametersOf(p, c.parameters)
	}
	l.regoFound(&l.findings, "", c.warnings, Warning)
	l.modulesRead(c.reads)
	if c.policy == nil {
		return nil
	}
	policy := c.policy.Governed(l.terms.Terms(p.from, p.spec.Spec.Rollout), from.Usable)
	l.plans.note(p.from, policy.Programs())
	l.failing(p.from, policy.Programs())
	l.reads.expressions(p.from, policy.Programs())
	l.unfilledByRego(p.from, c.program, spec.MatchConstraints, spec.MatchConditions, kinds)
	if c.program != nil {
		if !isMeant && !l.impossibleByRego(p, key, &c, kinds) {
			l.lackingByRego(p, &c, kinds)
		}
		l.plans.noteModules(p.from, c.program)
		l.plans.noteRules(p.from, policy.Queries()...)
	}
	return policy
}

// parametersOf warns of parameters that a policy has and its modules do not read, and of others that they read.
func (l *loader) parametersOf(p loadedRego, read rego.ParameterReads) {
	spec := &p.spec.Spec
	given, _ := p.from.At("spec.parameters")
	if spec.ParamKind != nil || spec.Bundle != "" || given.Valid() && given.Kind() != document.Object {
		return
	}
	var names []string
	for m := given.First(); m.Valid(); m = m.Next() {
		names = append(names, m.Key())
		if why := read.Ignores(m.Key()); why != "" {
			l.At(p.from, Warning, m.Path(), "%s", why)
		}
	}
	l.regoFound(&l.findings, applicability.UnknownName, read.Lacking(names, "`spec.parameters` has no such member"),
		Warning)
}

// bundle returns the bundle that a policy names; false if the configuration has none of the name.
// Until it was loaded, the policy fails for each request that it matches.
func (r *regoPolicies) bundle(l *loader, p loadedRego) (modules.Bundle, bool) {
	b, ok := l.gateway.Bundles[p.spec.Spec.Bundle]
	switch {
	case ok:
		return b, true
	case l.gateway.Bundles == nil:
		return modules.Bundle{Usable: func() error { return errUnknownBundle }}, true
	}
	known := "it has none"
	if len(l.gateway.Bundles) > 0 {
		known = finding.Quoted(slices.Sorted(maps.Keys(l.gateway.Bundles)))
	}
	l.At(p.from, Error, "spec.bundle", "must be the name of a bundle of the configuration: %s", known)
	return b, false
}

// errUnknownBundle is the failure of a policy that was compiled without a configuration.
var errUnknownBundle = errors.New("the bundle of the policy is not known")

// regoKey is the key of a RegoPolicy beside its text. A policy that changes has its modules
// compiled for it: the previous set's modules are in use, and preparing one of their rules changes
// them.
type regoKey struct {
	states  string
	origin  rego.Origin
	modules [sha256.Size]byte
}

// compiledRego is a RegoPolicy that was compiled, nil if something is wrong with it.
type compiledRego struct {
	policy           *rego.Policy
	program          *rego.Program
	errors, warnings rego.Errors
	failing          rego.Errors // calls of constants that always fail, and rules whose values cannot be used
	reads            rego.RequestReads
	parameters       rego.ParameterReads
}

// compileRego compiles a policy whose modules were compiled.
func compileRego(f *findings, p loadedRego, from rego.Source) (c compiledRego) {
	if c.program = from.Program; c.program != nil {
		if p.spec.Spec.BuiltinErrors == rego.UndefinedErrors {
			c.warnings = c.program.Relaxable()
		}
		c.warnings = append(c.warnings, c.program.Misprinted()...)
		c.failing, c.reads, c.parameters = c.program.FailingConstants(), c.program.RequestReads(),
			c.program.ParameterReads()
		for _, name := range c.program.States() {
			if !slices.Contains(from.States, name) {
				f.At(p.from, Error, "spec", "a module reads data.state.%s: no StateSource has that name", name)
			}
		}
	}
	var errs field.ErrorList
	c.policy, errs = rego.CompilePolicy(p.spec, from)
	f.Fields(p.from, Error, errs)
	if c.policy != nil {
		c.failing = append(c.failing, c.policy.Misvalued()...)
	}
	return c
}

// hashWith is the hash of the files, of the bundles that policies name, and of the documents that were assembled.
func hashWith(files string, bundles map[string]string, assembled []string) string {
	if len(bundles) == 0 && len(assembled) == 0 {
		return files
	}
	all := sha256.New()
	_, _ = fmt.Fprintln(all, files) // a hash takes everything
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		_, _ = fmt.Fprintln(all, name, bundles[name])
	}
	for _, sum := range assembled {
		_, _ = fmt.Fprintln(all, sum)
	}
	return hex.EncodeToString(all.Sum(nil))
}

// regoFound records what was found in modules by a check; "" is the compiler.
func (l *loader) regoFound(to *findings, rule string, found rego.Errors, severity Severity) {
	for _, e := range found {
		f := l.regoFinding(e, severity)
		if f.Rule = rule; !slices.Contains(to.Found, f) {
			to.Found = append(to.Found, f)
		}
	}
}

// regoFinding returns the finding about a place in a module.
func (l *loader) regoFinding(e rego.Error, severity Severity) Finding {
	f := Finding{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Severity: severity}
	if text, ok := l.texts[e.File]; ok { // the module is in a policy
		f.Point(text, e.Text, e.Column)
		if f.Column == 0 {
			f.Line, f.Column = endBefore(text, f.Line)
		}
	} else if e.Column > 0 {
		f.Excerpt = e.Text
	}
	return f
}

// endBefore returns the place behind the last letter up to a line of a text: a module that ends too early is wrong
// there.
func endBefore(text []byte, line int) (at, column int) {
	lines := strings.Split(string(text), "\n")
	if line <= len(lines) && strings.TrimSpace(lines[line-1]) != "" {
		return line, 0 // there is more, written in another way than the module has it
	}
	for at = min(line, len(lines)); at > 1 && strings.TrimSpace(lines[at-1]) == ""; at-- {
	}
	return at, len([]rune(strings.TrimRight(lines[at-1], " \r"))) + 1
}
