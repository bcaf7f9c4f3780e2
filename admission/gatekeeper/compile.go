package gatekeeper

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/match"
	"github.com/admission-gateway/gateway/admission/rego"
)

// The engines of templates, and the one target that they have.
const (
	regoEngineName = "Rego"
	celEngineName  = "K8sNativeValidation"
	targetName     = "admission.k8s.gatekeeper.sh"
)

// EngineAnnotation names the engine that is used of a template that has code for both.
const EngineAnnotation = "admission-gateway.io/engine"

// BuiltinErrorsAnnotation says what an error of a built-in function means in the modules of a template:
// Error, or Undefined as in Gatekeeper.
const BuiltinErrorsAnnotation = "admission-gateway.io/builtin-errors"

// A Problem is a fault in a module of a template.
type Problem struct {
	Path, File string
	// Column counts in Text, the line of the module, which the file has in its line Line.
	Line, Column  int
	Text, Message string
}

// Locate returns the file and the line in which the value at a path of the template begins.
type Locate func(path string) (file string, line int)

// CompileTemplate compiles a template. With findings or problems it returns nil.
func CompileTemplate(t *ConstraintTemplate, place Locate) (*Template, field.ErrorList, []Problem) {
	c := templateCompiler{template: t, place: place, Template: Template{kind: t.Spec.CRD.Spec.Names.Kind}}
	c.names()
	if c.kind != "" {
		var errs field.ErrorList
		c.schema, errs = compileSchema(t)
		c.errs = append(c.errs, errs...)
	}
	c.target()
	if len(c.errs)+len(c.problems) > 0 {
		return nil, c.errs, c.problems
	}
	return &c.Template, nil, nil
}

// templateCompiler compiles a template, all of it, so that everything that is wrong is found.
type templateCompiler struct {
	Template
	template *ConstraintTemplate
	place    Locate
	errs     field.ErrorList
	problems []Problem
}

func (c *templateCompiler) refuse(path *field.Path, value any, why string) {
	c.errs = append(c.errs, field.Invalid(path, value, why))
}

func (c *templateCompiler) names() {
	path := field.NewPath("spec", "crd", "spec", "names", "kind")
	switch {
	case c.kind == "":
		c.errs = append(c.errs, field.Required(path, "must be the kind of the constraints"))
	case !strings.EqualFold(c.template.Name, c.kind):
		c.refuse(field.NewPath("metadata", "name"), c.template.Name,
			fmt.Sprintf("must be '%s', the kind of the constraints in lower case", strings.ToLower(c.kind)))
	}
}

// target compiles the template's one target.
func (c *templateCompiler) target() {
	path := field.NewPath("spec", "targets")
	targets := c.template.Spec.Targets
	if len(targets) != 1 {
		c.errs = append(c.errs, field.Required(path, "must have one target"))
		return
	}
	t, path := &targets[0], path.Index(0)
	if t.Target != targetName {
		c.errs = append(c.errs, match.OneOf(t.Target, path.Child("target"), targetName)...)
	}
	c.setOperations(t.Operations, path.Child("operations"))
	code := map[string]*Code{}
	for i := range t.Code {
		engine := t.Code[i].Engine
		if code[engine] != nil {
			c.errs = append(c.errs, field.Duplicate(path.Child("code").Index(i).Child("engine"), engine))
		}
		code[engine] = &t.Code[i]
	}
	rego, expressions := c.rego(t, path), c.cel(t, path)
	c.hasCEL = expressions != nil
	switch preferred := c.template.Annotations[EngineAnnotation]; {
	case preferred == celEngineName && expressions != nil:
		c.engine = expressions
	case preferred != "" && preferred != celEngineName && preferred != regoEngineName:
		c.errs = append(c.errs, match.OneOf(preferred, field.NewPath("metadata", "annotations").Key(EngineAnnotation),
			regoEngineName, celEngineName)...)
	case rego != nil:
		c.engine = rego
	case expressions != nil:
		c.engine = expressions
	case len(c.errs)+len(c.problems) == 0:
		c.errs = append(c.errs, field.Required(path.Child("code"),
			"must have code for the engine Rego or K8sNativeValidation"))
	}
}

// setOperations says which operations the template judges. Gatekeeper's webhook reviews objects
// that are created or changed, and others if it is configured to. Here templates ask for that.
func (c *templateCompiler) setOperations(names []string, path *field.Path) {
	const reviewed = admission.Create | admission.Update
	if len(names) == 0 {
		c.operations = reviewed
	}
	for i, name := range names {
		switch name {
		case "CREATE":
			c.operations |= admission.Create
		case "UPDATE":
			c.operations |= admission.Update
		case "DELETE":
			c.operations |= admission.Delete
		case "CONNECT":
			c.operations |= admission.Connect
		case "*":
			c.operations |= admission.AllOperations
			if len(names) > 1 {
				c.refuse(path, names, "must not name other operations beside '*'")
			}
		default:
			c.errs = append(c.errs, field.NotSupported(path.Index(i), name,
				[]string{"*", "CREATE", "UPDATE", "DELETE", "CONNECT"}))
		}
	}
}

// cel compiles the code for K8sNativeValidation; nil if there is none, or with findings.
func (c *templateCompiler) cel(t *Target, path *field.Path) engine {
	for i := range t.Code {
		if t.Code[i].Engine != celEngineName {
			continue
		}
		at := path.Child("code").Index(i).Child("source")
		s := &CELSource{}
		if !c.source(&t.Code[i], at, s) {
			return nil
		}
		compiled, errs := compileCEL(c.kind, s, at)
		if c.errs = append(c.errs, errs...); compiled != nil {
			return compiled
		}
	}
	return nil
}

// source reads the source of an engine.
func (c *templateCompiler) source(code *Code, path *field.Path, into any) bool {
	if len(code.Source) == 0 {
		c.errs = append(c.errs, field.Required(path, "must be the source for the engine"))
		return false
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(code.Source, into); err != nil {
		c.refuse(path, field.OmitValueType{}, err.Error())
		return false
	}
	return true
}

// rego compiles the code for Rego; nil if there is none, or with problems.
func (c *templateCompiler) rego(t *Target, path *field.Path) engine {
	s, at := &RegoSource{Rego: t.Rego, Libs: t.Libs}, path
	if t.Rego == "" {
		found := false
		for i := range t.Code {
			if t.Code[i].Engine == regoEngineName {
				at, found = path.Child("code").Index(i).Child("source"), true
				if !c.source(&t.Code[i], at, s) {
					return nil
				}
				break
			}
		}
		if !found {
			return nil
		}
	}
	if s.Rego == "" {
		c.errs = append(c.errs, field.Required(at.Child("rego"), "must be a module"))
		return nil
	}
	return c.compileRego(s, at)
}

func (c *templateCompiler) compileRego(s *RegoSource, at *field.Path) engine {
	paths := []*field.Path{at.Child("rego")}
	texts := append([]string{s.Rego}, s.Libs...)
	for i := range s.Libs {
		paths = append(paths, at.Child("libs").Index(i))
	}
	modules := make([]rego.Module, len(texts))
	for i, text := range texts {
		file, line := c.place(paths[i].String())
		if strings.Contains(text, "\n") {
			line++ // a block begins in the line after its indicator
		}
		modules[i] = rego.Module{File: file, Line: line, Source: []byte(text)}
	}
	compiled, err := compileRego(s.Version != "v1", modules)
	if err != nil {
		c.problem(paths[0], err)
		return nil
	}
	switch wanted := c.template.Annotations[BuiltinErrorsAnnotation]; wanted {
	case "", "Error":
	case rego.UndefinedErrors:
		compiled.query, c.isLenient = compiled.query.Lenient(), true
	default:
		path := field.NewPath("metadata", "annotations").Key(BuiltinErrorsAnnotation)
		c.errs = append(c.errs, match.OneOf(wanted, path, "Error", rego.UndefinedErrors)...)
	}
	return compiled
}

// problem notes the faults of modules. The first module is at the path.
func (c *templateCompiler) problem(path *field.Path, err error) {
	var all rego.Errors
	if !errors.As(err, &all) {
		c.refuse(path, field.OmitValueType{}, err.Error())
		return
	}
	for _, one := range all {
		p := Problem{Path: path.String(), File: one.File, Line: one.Line, Column: one.Column, Text: one.Text,
			Message: one.Message}
		if p.Line == 0 {
			p.File, p.Line = c.place(p.Path)
		}
		c.problems = append(c.problems, p)
	}
}
