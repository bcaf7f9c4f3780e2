package cel

import (
	"fmt"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Rule is one compiled rule of x-kubernetes-validations. It is evaluated with
// [Self] bound to the value that the schema describes and, on an update,
// [OldSelf] to the value that it replaces, both with the Type of the [Rules]:
//
//	vars.Set(cel.Self, node, rules.Type)
//	vars.Set(cel.OldSelf, old, rules.Type)
//	ok, err := rule.Program.EvalBool(frame, vars)
//
// A rule is not evaluated for a null, nor when UsesOldSelf is set, OptionalOldSelf
// is not and there is no old value; see [Rule.Applies].
type Rule struct {
	// Program is the rule itself; nil if the rule is empty, which always holds.
	Program *Program
	// Source is the rule's text without blanks around it.
	Source string
	// Message is the author's message without blanks around it; "" if there is none.
	Message string
	// Reason is the author's; nil means FieldValueInvalid.
	Reason *apiextensionsv1.FieldValueErrorReason
	// FieldPath is the author's fieldPath relative to the value, in the syntax of field.Path
	// without a leading dot; "" if there is none.
	FieldPath string
	// UsesOldSelf reports whether the rule reads oldSelf: a transition rule, whose
	// failure is never ratcheted.
	UsesOldSelf bool
	// OptionalOldSelf makes oldSelf an optional value in the rule.
	OptionalOldSelf bool

	message *Program
}

// Rules are the compiled rules of one node of a schema.
type Rules struct {
	// Type is how the rules see the node's value.
	Type *value.Type
	// Rules are in the order of the schema.
	Rules []Rule
	// UsesOldSelf reports whether any rule reads oldSelf.
	UsesOldSelf bool
}

// CompileRules compiles the rules of one node of a schema, without the rules of
// its children. node is the node on the schema's structural spine: if rules stand
// in a nested allOf, node is still the one that allOf belongs to. resourceRoot
// is true for the root of a resource and of an embedded resource.
//
// It compiles once per node and is expensive; nothing it does is repeated when a
// request is validated. Findings name the rules by their paths below fldPath,
// which is the path of x-kubernetes-validations. All rules are returned, in
// their places; a rule that did not compile has no Program, and nothing Checked.
func CompileRules(rules apiextensionsv1.ValidationRules, node *structuralschema.Structural, resourceRoot bool,
	fldPath *field.Path) (*Rules, []*Checked, field.ErrorList) {
	if len(rules) == 0 {
		return nil, nil, nil
	}
	declType := model.SchemaDeclType(node, resourceRoot)
	if declType == nil {
		return nil, nil,
			field.ErrorList{field.Invalid(fldPath, node.Type,
				"may not have rules: their types cannot be told from this schema")}
	}
	compiled := &Rules{Type: value.NewType(node, resourceRoot), Rules: make([]Rule, len(rules))}
	c := ruleCompiler{node: node, typ: compiled.Type, self: declType.MaybeAssignTypeName(selfTypeName)}
	checked := make([]*Checked, len(rules))
	var errs field.ErrorList
	for i := range rules {
		var ruleErrs field.ErrorList
		compiled.Rules[i], checked[i], ruleErrs = c.compile(&rules[i], fldPath.Index(i))
		errs = append(errs, ruleErrs...)
		compiled.UsesOldSelf = compiled.UsesOldSelf || compiled.Rules[i].UsesOldSelf
	}
	return compiled, checked, errs
}

// selfTypeName is the name of the type of self if it is an object. Kubernetes makes up a new one
// each time so that no rule can name it; no identifier has an '@'.
const selfTypeName = "@self"

type ruleCompiler struct {
	node *structuralschema.Structural
	typ  *value.Type
	self *apiservercel.DeclType

	plain, optional *env // by how oldSelf is declared; made when a rule needs it
}

func (c *ruleCompiler) env(optionalOldSelf bool) (*env, error) {
	made, oldSelf := &c.plain, c.self.CelType()
	if optionalOldSelf {
		made, oldSelf = &c.optional, types.NewOptionalType(oldSelf)
	}
	if *made == nil {
		e, err := newEnv([]*apiservercel.DeclType{c.self},
			celgo.Variable(plan.NameSelf, c.self.CelType()), celgo.Variable(plan.NameOldSelf, oldSelf))
		if err != nil {
			return nil, fmt.Errorf("environment misconfigured: %w", err)
		}
		e.Seen[value.Self], e.Seen[value.OldSelf] = c.typ, c.typ
		*made = e
	}
	return *made, nil
}

func (c *ruleCompiler) compile(r *apiextensionsv1.ValidationRule,
	fldPath *field.Path) (Rule, *Checked, field.ErrorList) {
	rule := Rule{
		Source:          strings.TrimSpace(r.Rule),
		Message:         strings.TrimSpace(r.Message),
		Reason:          r.Reason,
		OptionalOldSelf: r.OptionalOldSelf != nil && *r.OptionalOldSelf,
	}
	if rule.Source == "" {
		return rule, nil, nil
	}
	var errs field.ErrorList
	e, err := c.env(rule.OptionalOldSelf)
	if err != nil {
		return rule, nil, field.ErrorList{field.InternalError(fldPath, err)}
	}
	checked, err := e.condition(r.Rule, nil)
	if err != nil {
		errs = append(errs, field.Invalid(fldPath.Child("rule"), r.Rule, err.Error()))
	} else {
		rule.Program = checked.Program
		rule.UsesOldSelf = rule.Program.Uses(value.OldSelf)
		rule.Program.optionalOld = rule.OptionalOldSelf
	}
	if strings.TrimSpace(r.MessageExpression) != "" {
		if rule.message, err = e.compile(r.MessageExpression, nil, celgo.StringType); err != nil {
			errs = append(errs, field.Invalid(fldPath.Child("messageExpression"), r.MessageExpression, err.Error()))
		} else {
			rule.message.optionalOld = rule.OptionalOldSelf
		}
	}
	if r.FieldPath != "" {
		path, _, err := schemacel.ValidFieldPath(r.FieldPath, c.node)
		if err != nil {
			errs = append(errs, field.Invalid(fldPath.Child("fieldPath"), r.FieldPath, err.Error()))
		} else {
			rule.FieldPath = path.String()
		}
	}
	return rule, checked, errs
}

// Applies reports whether the rule is evaluated when there is, or is not, an old
// value.
func (r *Rule) Applies(hasOld bool) bool {
	return r.Program != nil && (hasOld || !r.UsesOldSelf || r.OptionalOldSelf)
}

// HasMessageExpression reports whether the author gave a messageExpression.
func (r *Rule) HasMessageExpression() bool { return r.message != nil }

// Programs are the rule's expressions, none of them nil.
func (r *Rule) Programs() []*Program {
	var all []*Program
	for _, p := range []*Program{r.Program, r.message} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// EvalMessage evaluates the author's messageExpression for a rule that does not hold. It returns ""
// if there is none or it gives no usable message: then Message counts. The error is an [*Error]
// after which no further rule may be evaluated for the object.
func (r *Rule) EvalMessage(f *Frame, v *Vars) (string, error) {
	if r.message == nil {
		return "", nil
	}
	return evalMessage(r.message, f, v)
}

// evalMessage evaluates a message expression; what is no message counts as none. Only an error that ends all
// evaluations is returned.
func evalMessage(p *Program, f *Frame, v *Vars) (string, error) {
	s, err := p.EvalString(f, v)
	if err != nil {
		if e, ok := err.(*Error); ok && (e.Fatal() || e.Cause == value.OverLimit) {
			return "", err
		}
		return "", nil
	}
	s = strings.TrimSpace(s)
	if len(s) > MaxMessageBytes || strings.ContainsRune(s, '\n') {
		return "", nil
	}
	return s, nil
}
