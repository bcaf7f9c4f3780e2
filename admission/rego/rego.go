// Package rego compiles modules in Rego and evaluates their rules for requests.
//
// It is the only package that knows Open Policy Agent, whose compiler and evaluator it uses. A
// [Program] is a set of modules with its data, compiled once when policy files are loaded. A
// [Query] is one rule of it, such as data.policy.deny, prepared for requests. An [Input] has what
// modules know of a request. Its objects are read where they are, and what OPA needs of them is made
// once for all programs that judge the request.
//
// Evaluation fails closed. An error of a built-in function fails the evaluation, and so does a rule
// without a value. Built-in functions that reach the network or the process are refused when a
// module is compiled. Each evaluation has a budget, counted in steps and in the bytes that built-in
// functions make, and ends with the request's context.
package rego

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
)

// A Module is the text of a module.
type Module struct {
	// File is the name of the file that the text is in.
	File string
	// Line is the first line of the text in the file, from 1, if the module is inline; 0: at the
	// beginning.
	Line int
	// Source is the text.
	Source []byte
	// Tests says that the module only has tests: it is compiled with the others, and left out of
	// the program.
	Tests bool
	// Version is the version of the language; undefined: what Options say.
	Version ast.RegoVersion
}

// Options say how modules are compiled and run.
type Options struct {
	// V0 reads modules as OPA before 1.0 did.
	V0 bool
	// Hosts are the only hosts that http.send may ask; none: modules that call it are refused.
	Hosts []string
	// Template refuses modules that Gatekeeper would not accept in a template: the first one is the
	// template's own, the others are its libraries.
	Template bool
	// Data is the document data, beside what modules define; the zero Value is an empty one.
	Data Value
	// Print is given what the modules print; nil: nothing is printed.
	Print func(file string, line int, text string)
	// Budget is how much one evaluation may do; 0 stands for [DefaultBudget].
	Budget int64
	// Lenient lets tests take an error of a built-in function as an undefined value, as OPA's runner of tests does.
	Lenient bool
	// Foreign says that the modules are of no policy. Tests of them are lenient, and may replace any function of OPA's
	// and of conftest's by 'with'. A test that calls one of these that the gateway does not run is skipped.
	Foreign bool
}

// A Program is compiled modules with their data. It is immutable and safe for concurrent use.
type Program struct {
	compiler *ast.Compiler // nil once the program is sealed
	options  Options
	sources  sources
	data     ast.Value
	usable   *ast.Capabilities
	observed map[spot]*Observation // nil unless a test asks

	evaluations sync.Pool // of *evaluation
}

// Compile compiles modules. The error is of type [Errors].
func Compile(o Options, modules ...Module) (*Program, error) {
	builtin.Guard()
	p := &Program{options: o, data: o.Data.orEmpty()}
	all, parsed, errs := p.parse(modules)
	if len(errs) > 0 {
		return nil, errs
	}
	if o.Template {
		if errs := p.notOfTemplates(all); len(errs) > 0 {
			return nil, errs
		}
	}
	if len(parsed) < len(all) {
		if _, errs := p.compile(all, false); len(errs) > 0 {
			return nil, errs
		}
	}
	var found Errors
	if p.compiler, found = p.compile(parsed, false); len(found) > 0 {
		return nil, found
	}
	if heavy := p.tooHeavy(p.compiler); len(heavy) > 0 {
		return nil, heavy
	}
	return p, nil
}

// Seal releases what only a compilation needs. No rule must be prepared any more. OPA's evaluator,
// and what is asked about rules, compile the modules again.
func (p *Program) Seal(queries ...*Query) {
	for _, q := range queries {
		if q != nil && q.native == nil {
			return
		}
	}
	for _, q := range queries {
		if q != nil {
			q.opa = nil
		}
	}
	// The index of rules that a plan asks keeps the compiler, but needs only its rules.
	c := p.compiler
	c.TypeEnv, c.Modules, c.ModuleTree, c.Graph = nil, nil, nil, nil
	p.compiler = nil
}

// compiled returns the compiler of the modules.
func (p *Program) compiled() *ast.Compiler {
	if p.compiler != nil {
		return p.compiler
	}
	c, errs := p.compile(p.modules(), false)
	if len(errs) > 0 {
		panic(errs) // they were compiled before
	}
	return c
}

// modules returns the modules as they are written, but for tests.
func (p *Program) modules() map[string]*ast.Module {
	all := map[string]*ast.Module{}
	for name, m := range p.sources {
		if m.Tests {
			continue
		}
		module, err := p.parseOne(name, &m)
		if err != nil {
			panic(err) // they were parsed before
		}
		all[name] = module
	}
	return all
}

func (p *Program) parseOne(name string, m *Module) (*ast.Module, error) {
	version := m.Version
	if version == ast.RegoUndefined {
		version = p.version()
	}
	return ast.ParseModuleWithOpts(name, string(m.Source),
		ast.ParserOptions{Capabilities: p.capabilities(), RegoVersion: version})
}

// Lint returns what OPA's strict mode finds in modules that compile: unused variables, arguments
// and imports, deprecated functions, names that hide input or data.
func Lint(o Options, modules ...Module) Errors {
	builtin.Guard()
	p := &Program{options: o, data: o.Data.orEmpty()}
	all, _, errs := p.parse(modules)
	if len(errs) > 0 {
		return nil
	}
	_, errs = p.compile(all, true)
	return errs
}

// parse parses the modules. all has the tests too.
func (p *Program) parse(modules []Module) (all, parsed map[string]*ast.Module, errs Errors) {
	all, parsed, p.sources = map[string]*ast.Module{}, map[string]*ast.Module{}, sources{}
	for i, m := range modules {
		name := fmt.Sprintf("%d/%s", i, m.File)
		p.sources[name] = m
		module, err := p.parseOne(name, &m)
		switch {
		case err != nil:
			errs = append(errs, p.orOtherVersion(p.sources.errorsOf(err), &m)...)
		case module == nil:
			errs = append(errs, Error{File: m.File, Line: max(m.Line, 1), Column: 1, Message: "must hold a package"})
		default:
			all[name] = module
			if !m.Tests {
				parsed[name] = module
			}
		}
	}
	return all, parsed, errs
}

// orOtherVersion returns what is wrong with a module. If the module is right in the other version of
// the language, it says how to ask for that.
func (p *Program) orOtherVersion(errs Errors, m *Module) Errors {
	isOld := m.Version != ast.RegoV0 && (m.Version != ast.RegoUndefined || p.version() != ast.RegoV0)
	other := *m
	if other.Version = ast.RegoV1; isOld {
		other.Version = ast.RegoV0
	}
	if _, err := p.parseOne(m.File, &other); err != nil || len(errs) == 0 {
		return errs
	}
	advice := "; this is Rego since OPA 1.0: "
	if isOld {
		advice = "; this is Rego before OPA 1.0: "
	}
	switch {
	case m.Version != ast.RegoUndefined:
		advice += "set `rego_version` in the manifest of the bundle"
	case p.options.Template && isOld:
		advice += "leave out `version`"
	case p.options.Template:
		advice += "set `version: v1` in the `source` of `code`"
	case isOld:
		advice += "set `regoVersion: V0`"
	default:
		advice += "leave out `regoVersion: V0`"
	}
	first := errs[0]
	first.Message += advice
	return Errors{first}
}

func (p *Program) compile(modules map[string]*ast.Module, strict bool) (*ast.Compiler, Errors) {
	c := p.newCompiler(p.options.Print != nil).WithStrict(strict)
	if c.Compile(copied(modules)); !c.Failed() && mayCycle(c) {
		c = p.newCompiler(p.options.Print != nil).WithStrict(strict).WithSkipStages(ast.StageBuildComprehensionIndices)
		c.Compile(copied(modules))
	}
	if c.Failed() {
		return nil, p.sources.errorsOf(c.Errors)
	}
	return c, nil
}

// copied returns copies of modules, which the compiler rewrites.
func copied(modules map[string]*ast.Module) map[string]*ast.Module {
	copies := make(map[string]*ast.Module, len(modules))
	for name, m := range modules {
		copies[name] = m.Copy()
	}
	return copies
}

func (p *Program) newCompiler(prints bool) *ast.Compiler {
	return ast.NewCompiler().
		WithCapabilities(p.capabilities()).
		WithDefaultRegoVersion(p.version()).
		WithEnablePrintStatements(prints).
		SetErrorLimit(0)
}

func (p *Program) version() ast.RegoVersion {
	if p.options.V0 {
		return ast.RegoV0
	}
	return ast.RegoV1
}

// capabilities say what modules can use: all of OPA's functions but for the refused ones. Schemas
// are not fetched from anywhere.
func (p *Program) capabilities() *ast.Capabilities {
	if p.usable != nil {
		return p.usable
	}
	c := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(p.version()))
	c.AllowNet = append([]string{}, p.options.Hosts...)
	if p.options.Foreign {
		c.Builtins = append(c.Builtins, builtin.OfConftest()...)
		p.usable = c
		return c
	}
	refused := p.options.refused()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		_, is := refused[b.Name]
		return is
	})
	p.usable = c
	return c
}

// refused are the functions that the options leave refused.
func (o *Options) refused() map[string]string {
	all := builtin.Refusals()
	if len(o.Hosts) > 0 {
		delete(all, ast.HTTPSend.Name)
	}
	return all
}

// Has reports whether modules define a rule, such as data.policy.deny.
func (p *Program) Has(rule string) bool {
	ref, err := ast.ParseRef(rule)
	return err == nil && len(p.compiled().GetRulesExact(ref)) > 0
}

// Packages are the packages of the modules, such as data.policy, each once, in the order of the
// modules.
func (p *Program) Packages() []string {
	var all []string
	seen := map[string]bool{}
	for _, name := range p.sources.names() {
		m, ok := p.compiled().Modules[name]
		if !ok {
			continue
		}
		if path := m.Package.Path.String(); !seen[path] {
			seen[path] = true
			all = append(all, path)
		}
	}
	return all
}

// Reads reports whether the modules may read a part of the input, such as "review", "oldObject" for
// its member.
func (p *Program) Reads(path ...string) bool {
	reads := false
	for _, m := range p.compiled().Modules {
		ast.WalkRefs(m, func(r ast.Ref) bool {
			reads = reads || mayReach(r, path)
			return reads
		})
	}
	return reads
}

// ReadsCarried reports whether the modules may read fields of the object that a server carries over from the stored
// object: fields of metadata that are the server's, and the status.
func (p *Program) ReadsCarried() bool {
	reads := false
	for _, m := range p.compiled().Modules {
		ast.WalkRefs(m, func(r ast.Ref) bool {
			reads = reads || slices.ContainsFunc(carriedPaths, func(path []string) bool { return mayReach(r, path) })
			return reads
		})
	}
	return reads
}

// carriedPaths lead to what a server carries over in the forms of the input: reviews, and what other programs give
// modules.
var carriedPaths = func() [][]string {
	all := [][]string{{"parsed_body"}, {"attributes"}, {"request", "http"}}
	for _, review := range []string{"review", "request"} {
		all = append(all, []string{review, "object", "status"})
		for _, name := range []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
			"generation", "managedFields", "uid"} {
			all = append(all, []string{review, "object", "metadata", name})
		}
	}
	return all
}()

// States are the names of the collections that the modules read as data.state.NAME.
func (p *Program) States() []string {
	var names []string
	for _, m := range p.compiled().Modules {
		ast.WalkRefs(m, func(r ast.Ref) bool {
			if len(r) > 2 && r.HasPrefix(stateRef) {
				if name, ok := r[2].Value.(ast.String); ok && !slices.Contains(names, string(name)) {
					names = append(names, string(name))
				}
			}
			return false
		})
	}
	slices.Sort(names)
	return names
}

var stateRef = ast.MustParseRef("data." + stateName)

// mayReach reports whether a reference to the input can lead to the path, or to one of its parents.
func mayReach(r ast.Ref, path []string) bool {
	if !r.HasPrefix(ast.InputRootRef) {
		return false
	}
	for i, step := range r[1:] {
		if i == len(path) {
			return true
		}
		name, ok := step.Value.(ast.String)
		if ok && string(name) != path[i] {
			return false
		}
		if !ok {
			if _, isVar := step.Value.(ast.Var); !isVar {
				return false
			}
		}
	}
	return true
}

// sources are the modules by the name that OPA knows them by.
type sources map[string]Module

func (s sources) names() []string {
	all := make([]string, len(s))
	for name := range s {
		var i int
		if _, err := fmt.Sscanf(name, "%d/", &i); err == nil && i < len(all) {
			all[i] = name
		}
	}
	return all
}

// place returns the position of a location in the files.
func (s sources) place(l *ast.Location) (file string, line, column int) {
	if l == nil {
		return "", 0, 0
	}
	m, ok := s[l.File]
	if !ok {
		return l.File, l.Row, l.Col
	}
	if m.Line > 1 {
		return m.File, m.Line + l.Row - 1, l.Col
	}
	return m.File, l.Row, l.Col
}

// Errors say what is wrong with modules.
type Errors []Error

// An Error has a position in a file.
type Error struct {
	File         string
	Line, Column int
	// Text is the line of the module that Column counts in; in its file it may be indented.
	Text    string
	Message string
}

func (e Error) Error() string {
	if e.File == "" {
		return e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

// sort sorts the errors by their places.
func (e Errors) sort() {
	slices.SortFunc(e, func(a, b Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// errorsOf makes Errors of OPA's.
func (s sources) errorsOf(err error) Errors {
	var all Errors
	switch err := err.(type) {
	case ast.Errors:
		for _, one := range err {
			all = append(all, s.errorOf(one))
		}
	case *ast.Error:
		all = append(all, s.errorOf(err))
	default:
		all = append(all, Error{Message: err.Error()})
	}
	return all
}

func (s sources) errorOf(err *ast.Error) Error {
	e := Error{Message: err.Code + ": " + wording(err.Message)}
	e.locate(s, err.Location)
	if err.Details == nil {
		return e
	}
	for _, line := range err.Details.Lines() {
		if line = strings.TrimSpace(line); line != "" && strings.Trim(line, "^") != "" &&
			!strings.Contains(err.Message, line) {
			e.Message += "; " + line
		}
	}
	return e
}

// locate sets the place of an error.
func (e *Error) locate(s sources, l *ast.Location) {
	e.File, e.Line, e.Column = s.place(l)
	if l == nil {
		return
	}
	lines := strings.Split(string(s[l.File].Source), "\n")
	if l.Row > 0 && l.Row <= len(lines) {
		e.Text = strings.TrimSuffix(lines[l.Row-1], "\r")
	}
}

// wording says of a refused function why it is refused.
func wording(message string) string {
	name, ok := strings.CutPrefix(message, "undefined function ")
	if why := builtin.Refusals()[name]; ok && why != "" {
		return fmt.Sprintf("must not call '%s': %s", name, why)
	}
	return message
}

// runtimeError gives the position at which an evaluation failed.
func (s sources) runtimeError(err *topdown.Error) error {
	message, _, _ := strings.Cut(err.Message, "\n") // the lines below name values
	e := Error{Message: err.Code + ": " + worded(strings.TrimSuffix(message, ":"))}
	e.File, e.Line, e.Column = s.place(err.Location)
	if e.File != "" {
		e.File = filepath.Base(e.File) // the client reads it
	}
	return e
}
