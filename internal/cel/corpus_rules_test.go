package cel

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// TestCorpusOfRules evaluates every rule of every CustomResourceDefinition in the suites on the values in recorded
// objects that it is about, and on what these are not, in the same three ways.
func TestCorpusOfRules(t *testing.T) {
	var n tally
	objects := recordedObjects(t)
	for _, text := range celtest.PolicyDocuments(t) {
		var crd apiextensionsv1.CustomResourceDefinition
		if json.Unmarshal(text, &crd) != nil || crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
				v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			s, err := structuralschema.NewStructural(&internal)
			if err != nil {
				continue // meant to be refused
			}
			n.rules(t, s, true, objects[crd.Spec.Names.Kind])
		}
	}
	n.report(t, 99)
}

// recordedObjects are the objects of recorded requests and in policy files by their kinds.
func recordedObjects(t *testing.T) map[string][]any {
	objects := map[string][]any{}
	add := func(text json.RawMessage) {
		var v struct{ Kind string }
		if json.Unmarshal(text, &v) == nil && v.Kind != "" && len(objects[v.Kind]) < 40 {
			objects[v.Kind] = append(objects[v.Kind], celtest.Decode(t, string(text)))
		}
	}
	for _, name := range []string{"gateway-api-cel-standard.jsonl", "gateway-api-examples.jsonl", "vap-map-lab.jsonl"} {
		celtest.EachLine(t, name, func(line []byte) {
			var c struct {
				Request struct{ Body json.RawMessage }
				Setup   []struct{ Body json.RawMessage }
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			add(c.Request.Body)
			for _, s := range c.Setup {
				add(s.Body)
			}
		})
	}
	for _, text := range celtest.PolicyDocuments(t) {
		add(text)
	}
	return objects
}

// rules compares the rules of a schema and of the schemas in it; values are the values that objects
// have there.
func (n *tally) rules(t *testing.T, s *structuralschema.Structural, root bool, values []any) {
	if len(s.XValidations) > 0 {
		n.rulesOf(t, s, root, values)
	}
	for name, property := range s.Properties {
		var below []any
		for _, v := range values {
			if m, ok := v.(map[string]any); ok && m[name] != nil {
				below = append(below, m[name])
			}
		}
		n.rules(t, &property, false, below)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		var below []any
		for _, v := range values {
			m, _ := v.(map[string]any)
			for _, x := range m {
				below = append(below, x)
			}
		}
		n.rules(t, s.AdditionalProperties.Structural, false, below)
	}
	if s.Items != nil {
		var below []any
		for _, v := range values {
			l, _ := v.([]any)
			below = append(below, l...)
		}
		n.rules(t, s.Items, false, below)
	}
}

func (n *tally) rulesOf(t *testing.T, s *structuralschema.Structural, root bool, values []any) {
	compiled, _, _ := CompileRules(s.XValidations, s, root, field.NewPath("rules"))
	if compiled == nil {
		return
	}
	environments := map[bool]*celgo.Env{}
	c := ruleCompiler{node: s, typ: compiled.Type,
		self: model.SchemaDeclType(s, root).MaybeAssignTypeName(selfTypeName)}
	withMeta := s
	if root || s.XEmbeddedResource {
		withMeta = model.WithTypeAndObjectMeta(s)
	}
	values = append(slices.Clip(values[:min(len(values), 12)]), map[string]any{}, []any{}, "", int64(1), nil)
	for i, rule := range compiled.Rules {
		if rule.Program == nil {
			continue
		}
		e, err := c.env(rule.OptionalOldSelf)
		if err != nil {
			t.Fatal(err)
		}
		if environments[rule.OptionalOldSelf] == nil {
			environments[rule.OptionalOldSelf] = rulesEnv(t, s, root, rule.OptionalOldSelf)
		}
		expressions := []string{s.XValidations[i].Rule}
		if m := s.XValidations[i].MessageExpression; m != "" {
			expressions = append(expressions, m)
		}
		for _, expression := range expressions {
			checked, issues := e.Compile(expression)
			theirAST, theirIssues := environments[rule.OptionalOldSelf].Compile(expression)
			if issues != nil || theirIssues != nil {
				continue
			}
			natively, err := e.plan(expression, checked.NativeRep(), nil)
			if err != nil {
				continue
			}
			lazily, _, err := e.interpreted(expression, checked.NativeRep(), nil)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := environments[rule.OptionalOldSelf].Program(theirAST)
			if err != nil {
				t.Fatal(err)
			}
			natively.optionalOld, lazily.optionalOld = rule.OptionalOldSelf, rule.OptionalOldSelf
			n.planned(natively)
			for j, v := range values {
				n.rule(t, expression, natively, lazily, theirs, compiled.Type, withMeta, rule.OptionalOldSelf, v,
					values[(j+1)%len(values)])
			}
		}
	}
}

// rulesEnv is the environment of a schema's rules as Kubernetes makes it.
func rulesEnv(t testing.TB, s *structuralschema.Structural, root, optional bool) *celgo.Env {
	decl := model.SchemaDeclType(s, root).MaybeAssignTypeName("selfType")
	old := decl.CelType()
	if optional {
		old = types.NewOptionalType(old)
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        []celgo.EnvOption{celgo.Variable("self", decl.CelType()), celgo.Variable("oldSelf", old)},
			DeclTypes:         []*apiservercel.DeclType{decl},
		})
	if err != nil {
		t.Fatal(err)
	}
	return set.StoredExpressionsEnv()
}

func (n *tally) rule(t *testing.T, expression string, natively, lazily *Program, theirs celgo.Program, typ *value.Type,
	s *structuralschema.Structural, optional bool, self, old any) {
	if self == nil || old == nil && !optional {
		return // rules are not evaluated for null
	}
	vars := map[string]any{"self": schemacel.UnstructuredToVal(self, s), "oldSelf": types.OptionalNone}
	if old != nil {
		vars["oldSelf"] = schemacel.UnstructuredToVal(old, s)
		if optional {
			vars["oldSelf"] = types.OptionalOf(schemacel.UnstructuredToVal(old, s))
		}
	}
	set := func(v *Vars) {
		v.Set(value.Self, celtest.Parse(t, encode(t, self)), typ)
		if old != nil {
			v.Set(value.OldSelf, celtest.Parse(t, encode(t, old)), typ)
		}
	}
	n.compare(t, expression,
		func() (evalResult, bool) { return ours(natively, set), natively.native != nil },
		func() evalResult { return ours(lazily, set) },
		func() evalResult { return kubernetes(theirs, vars) })
}

func encode(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kubernetes is theirs for programs that may panic, as Kubernetes' own values do over some that are of wrong types.
func kubernetes(p celgo.Program, vars map[string]any) (o evalResult) {
	defer func() {
		if r := recover(); r != nil {
			o = evalResult{err: fmt.Sprint("internal error: ", r)}
		}
	}()
	return theirs(p, vars)
}
