package cel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// suites is the folder of recorded suites: SUITES_DIR, relative to the root of the repository.
func suites(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = "../shared/suites"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("../..", dir)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	return dir
}

// eachLine calls do for each line of a recorded suite.
func eachLine(t testing.TB, name string, do func(line []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join(suites(t), "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		do(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// policyDocuments are the objects in all policy files of the suites, as JSON.
func policyDocuments(t testing.TB) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	err := filepath.WalkDir(suites(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range bytes.Split(text, []byte("\n---")) {
			if object, err := yaml.YAMLToJSON(part); err == nil && len(object) > 0 && object[0] == '{' {
				all = append(all, object)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vap-map-lab.jsonl", "policy-load.jsonl"} {
		eachLine(t, name, func(line []byte) {
			var c struct {
				PolicyObjects []json.RawMessage
				Request       struct{ Body json.RawMessage }
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			all = append(append(all, c.PolicyObjects...), c.Request.Body)
		})
	}
	slices.SortFunc(all, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return slices.CompactFunc(all, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// requestBodies are some objects of recorded requests, the largest of each kind and shape.
func requestBodies(t testing.TB) []string {
	t.Helper()
	bodies := []string{plainObject, benchObject}
	seen := map[string]bool{}
	for _, name := range []string{"vap-kubescape.jsonl", "vap-map-lab.jsonl"} {
		eachLine(t, name, func(line []byte) {
			var c struct {
				Request struct{ Body json.RawMessage }
			}
			var shape struct{ Kind string }
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			if json.Unmarshal(c.Request.Body, &shape) != nil || shape.Kind == "" {
				return
			}
			key := fmt.Sprint(shape.Kind, len(c.Request.Body)/100)
			if !seen[key] {
				seen[key] = true
				bodies = append(bodies, string(c.Request.Body))
			}
		})
	}
	return bodies
}

// tally counts what a corpus came to.
type tally struct {
	expressions, native, compared int
	reasons                       map[string]int
}

func (n *tally) planned(p *Program) {
	n.expressions++
	if p.native != nil {
		n.native++
		return
	}
	if n.reasons == nil {
		n.reasons = map[string]int{}
	}
	n.reasons[p.reason]++
}

// report prints the share of native plans, which must not fall.
func (n *tally) report(t *testing.T, least float64) {
	t.Helper()
	share := 100 * float64(n.native) / float64(max(n.expressions, 1))
	t.Logf("%d of %d expressions run natively (%.1f %%); %d values compared", n.native, n.expressions, share, n.compared)
	for reason, times := range n.reasons {
		t.Logf("%d times: %s", times, reason)
	}
	if share < least {
		t.Errorf("%.1f %% of the expressions run natively, want at least %v %%", share, least)
	}
}

// same tells whether two evaluations came to the same value, or both to an error.
func same(a, b outcome) bool { return a.value == b.value && (a.err == "") == (b.err == "") }

// uncomparable tells whether Kubernetes answers differently for a reason that has nothing to do with how expressions run.
func uncomparable(ours, theirs outcome) bool {
	return strings.Contains(ours.err, "beyond 64 bits") || // Kubernetes rounds
		strings.Contains(theirs.err, "cost limit") || strings.Contains(theirs.err, "cost budget") || // counted by another measure
		strings.HasPrefix(theirs.err, "internal error") // it panics where an argument is an error or of another type
}

// compare compares an expression's value in three ways; natively has it where there is a native plan.
func (n *tally) compare(t *testing.T, expression string, natively func() (outcome, bool), lazily, kubernetes func() outcome) {
	t.Helper()
	lazy, judged := lazily(), kubernetes()
	n.compared++
	for try := 0; try < 100 && !same(lazy, judged) && !uncomparable(lazy, judged); try++ {
		judged = kubernetes() // the order of a map's keys is random
	}
	if !same(lazy, judged) && !uncomparable(lazy, judged) {
		t.Errorf("%s\nlazily     %v\nKubernetes %v", expression, lazy, judged)
	}
	if got, ok := natively(); ok && got != lazy {
		t.Errorf("%s\nnatively %v\nlazily   %v", expression, got, lazy)
	}
}

// anyExpression is an expression of any type for Kubernetes' compiler.
type anyExpression struct{ name, text string }

func (e anyExpression) GetName() string          { return e.name }
func (e anyExpression) GetExpression() string    { return e.text }
func (anyExpression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType} }

// policySpec is what admission policies of all kinds have.
type policySpec struct {
	Kind string
	Spec struct {
		ParamKind        *struct{}
		Variables        []struct{ Name, Expression string }
		MatchConditions  []struct{ Expression string }
		Validations      []struct{ Expression, MessageExpression string }
		AuditAnnotations []struct{ ValueExpression string }
	}
}

const corpusNamespace = `{"metadata":{"name":"default","labels":{"team":"a"}},"spec":{},"status":{}}`

// TestCorpusOfPolicies evaluates every expression of every policy in the suites on recorded objects: natively, by cel-go
// on lazy values, and with Kubernetes' own compiler and evaluator.
func TestCorpusOfPolicies(t *testing.T) {
	var n tally
	bodies := requestBodies(t)
	var params []string
	for _, object := range policyDocuments(t) {
		if bytes.Contains(object, []byte(`"ControlConfiguration"`)) && bytes.Contains(object, []byte(`"settings"`)) && !bytes.Contains(object, []byte("CustomResourceDefinition")) {
			params = append(params, string(object))
		}
	}
	params = params[:min(len(params), 3)]
	for _, object := range policyDocuments(t) {
		var p policySpec
		if json.Unmarshal(object, &p) != nil || p.Kind != "ValidatingAdmissionPolicy" && p.Kind != "MutatingAdmissionPolicy" {
			continue
		}
		evaluatePolicy(t, &n, &p, bodies, params)
	}
	n.report(t, 99)
}

func evaluatePolicy(t *testing.T, n *tally, p *policySpec, bodies, params []string) {
	hasParams := p.Spec.ParamKind != nil
	c := NewAdmissionCompiler(hasParams)
	judge, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declarations := plugincel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true}
	e, err := c.env(true)
	if err != nil {
		t.Fatal(err)
	}
	lazyVariables := &Variables{}
	for _, v := range p.Spec.Variables {
		if err := c.Variable(v.Name, v.Expression); err != nil {
			continue
		}
		judge.CompileAndStoreVariable(anyExpression{v.Name, v.Expression}, declarations, environment.StoredExpressions)
		program := c.list.programs[len(c.list.programs)-1]
		n.planned(program)
		checked, issues := e.Compile(v.Expression)
		if issues != nil {
			t.Fatal(issues.Err())
		}
		lazy, _, err := e.interpreted(v.Expression, checked.NativeRep(), lazyVariables)
		if err != nil {
			t.Fatal(err)
		}
		lazyVariables.add(v.Name, lazy)
	}
	var expressions []string
	for _, v := range p.Spec.Variables {
		expressions = append(expressions, "variables."+v.Name)
	}
	for _, v := range p.Spec.MatchConditions {
		expressions = append(expressions, v.Expression)
	}
	for _, v := range p.Spec.Validations {
		expressions = append(expressions, v.Expression)
		if v.MessageExpression != "" {
			expressions = append(expressions, v.MessageExpression)
		}
	}
	for _, v := range p.Spec.AuditAnnotations {
		expressions = append(expressions, v.ValueExpression)
	}
	for _, expression := range expressions {
		checked, issues := e.Compile(expression)
		if issues != nil {
			continue // meant to be refused
		}
		natively, err := e.plan(expression, checked.NativeRep(), &c.list)
		if err != nil {
			continue
		}
		lazily, _, err := e.interpreted(expression, checked.NativeRep(), lazyVariables)
		if err != nil {
			t.Fatal(err)
		}
		n.planned(natively)
		theirs := judge.CompileCondition([]plugincel.ExpressionAccessor{anyExpression{"", expression}}, declarations, environment.StoredExpressions)
		for i, body := range bodies {
			param := ""
			if len(params) > 0 && hasParams && i%4 != 3 {
				param = params[i%len(params)]
			}
			evaluateThreeWays(t, n, expression, natively, lazily, &c.list, lazyVariables, theirs, body, bodies[(i+1)%len(bodies)], param)
		}
	}
}

func evaluateThreeWays(t *testing.T, n *tally, expression string, natively, lazily *Program, variables, lazyVariables *Variables, theirs plugincel.ConditionEvaluator, body, old, param string) {
	object := &unstructured.Unstructured{Object: decode(t, body).(map[string]any)}
	before := &unstructured.Unstructured{Object: decode(t, old).(map[string]any)}
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	attributes := admission.NewAttributesRecord(object, before, kind, "default", "web", resource, "", admission.Update, nil, false, &user.DefaultInfo{Name: "jane", UID: "1", Groups: []string{"dev"}})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(before)}
	bindings := plugincel.OptionalVariableBindings{}
	if param != "" {
		bindings.VersionedParams = &unstructured.Unstructured{Object: decode(t, param).(map[string]any)}
	}
	namespace := &corev1.Namespace{}
	if err := json.Unmarshal([]byte(corpusNamespace), namespace); err != nil {
		t.Fatal(err)
	}
	request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	want := func() outcome {
		results, _, err := theirs.ForInput(context.Background(), versioned, request, bindings, plugincel.CreateNamespaceObject(namespace), 100*PolicyBudget)
		switch {
		case err != nil:
			return outcome{err: err.Error()}
		case results[0].Error != nil:
			return outcome{err: results[0].Error.Error()}
		}
		return outcome{value: show(results[0].EvalResult)}
	}
	set := func(v *Vars) {
		v.Set(Object, parse(t, body), nil)
		v.Set(OldObject, parse(t, old), nil)
		v.Set(NamespaceObject, parse(t, corpusNamespace), nil)
		if param != "" {
			v.Set(Params, parse(t, param), nil)
		}
		v.SetRequest(&Request{
			Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "default", Name: "web", Operation: "UPDATE",
			User: User{Name: "jane", UID: "1", Groups: []string{"dev"}},
		})
	}
	n.compare(t, expression,
		func() (outcome, bool) { return oursWith(natively, variables, set), natively.native != nil },
		func() outcome { return oursWith(lazily, lazyVariables, set) }, want)
}

// TestCorpusOfRules evaluates every rule of every CustomResourceDefinition in the suites on the values in recorded objects
// that it is about, and on what these are not, in the same three ways.
func TestCorpusOfRules(t *testing.T) {
	var n tally
	objects := recordedObjects(t)
	for _, text := range policyDocuments(t) {
		var crd apiextensionsv1.CustomResourceDefinition
		if json.Unmarshal(text, &crd) != nil || crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
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
			objects[v.Kind] = append(objects[v.Kind], decode(t, string(text)))
		}
	}
	for _, name := range []string{"gateway-api-cel-standard.jsonl", "gateway-api-examples.jsonl", "vap-map-lab.jsonl"} {
		eachLine(t, name, func(line []byte) {
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
	for _, text := range policyDocuments(t) {
		add(text)
	}
	return objects
}

// rules compares the rules of a schema and of the schemas in it; values are what objects have there.
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
	compiled, _ := CompileRules(s.XValidations, s, root, field.NewPath("rules"))
	if compiled == nil {
		return
	}
	judges := map[bool]*celgo.Env{}
	c := ruleCompiler{node: s, typ: compiled.Type, self: model.SchemaDeclType(s, root).MaybeAssignTypeName(selfTypeName)}
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
		if judges[rule.OptionalOldSelf] == nil {
			judges[rule.OptionalOldSelf] = rulesEnv(t, s, root, rule.OptionalOldSelf)
		}
		expressions := []string{s.XValidations[i].Rule}
		if m := s.XValidations[i].MessageExpression; m != "" {
			expressions = append(expressions, m)
		}
		for _, expression := range expressions {
			checked, issues := e.Compile(expression)
			theirAST, theirIssues := judges[rule.OptionalOldSelf].Compile(expression)
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
			theirs, err := judges[rule.OptionalOldSelf].Program(theirAST)
			if err != nil {
				t.Fatal(err)
			}
			natively.optionalOld, lazily.optionalOld = rule.OptionalOldSelf, rule.OptionalOldSelf
			n.planned(natively)
			for j, v := range values {
				n.rule(t, expression, natively, lazily, theirs, compiled.Type, withMeta, rule.OptionalOldSelf, v, values[(j+1)%len(values)])
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
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []celgo.EnvOption{celgo.Variable("self", decl.CelType()), celgo.Variable("oldSelf", old)},
		DeclTypes:         []*apiservercel.DeclType{decl},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set.StoredExpressionsEnv()
}

func (n *tally) rule(t *testing.T, expression string, natively, lazily *Program, theirs celgo.Program, typ *Type, s *structuralschema.Structural, optional bool, self, old any) {
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
		v.Set(Self, parse(t, encode(t, self)), typ)
		if old != nil {
			v.Set(OldSelf, parse(t, encode(t, old)), typ)
		}
	}
	n.compare(t, expression,
		func() (outcome, bool) { return ours(natively, set), natively.native != nil },
		func() outcome { return ours(lazily, set) },
		func() outcome { return kubernetes(theirs, vars) })
}

func encode(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kubernetes is theirs for programs that may panic, as Kubernetes' own values do over some that are of wrong types.
func kubernetes(p celgo.Program, vars map[string]any) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			o = outcome{err: fmt.Sprint("internal error: ", r)}
		}
	}()
	return theirs(p, vars)
}

// TestCorpusOfSources evaluates the expressions in cel-spec and in the sources of the tests of cel-go and Kubernetes.
func TestCorpusOfSources(t *testing.T) {
	var n tally
	e, err := newAdmissionEnv(nil, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	object, old := decode(t, plainObject), decode(t, benchObject)
	values := map[string]any{
		"object": types.DefaultTypeAdapter.NativeToValue(object), "oldObject": types.DefaultTypeAdapter.NativeToValue(old),
		"params": nil, "namespaceObject": nil,
	}
	node, oldNode := parse(t, plainObject), parse(t, benchObject)
	set := func(v *Vars) {
		v.Set(Object, node, nil)
		v.Set(OldObject, oldNode, nil)
	}
	for _, expression := range sourceExpressions(t) {
		checked, issues := e.Compile(expression)
		if issues != nil {
			continue
		}
		theirs, err := e.Program(checked)
		natively, ourErr := e.plan(expression, checked.NativeRep(), nil)
		if (err == nil) != (ourErr == nil) {
			t.Errorf("%s\nplanning: %v, Kubernetes %v", expression, ourErr, err)
		}
		if err != nil || ourErr != nil {
			continue
		}
		lazily, _, err := e.interpreted(expression, checked.NativeRep(), nil)
		if err != nil {
			t.Fatal(err)
		}
		n.planned(natively)
		n.compare(t, expression,
			func() (outcome, bool) { return ours(natively, set), natively.native != nil },
			func() outcome { return ours(lazily, set) },
			func() outcome { return kubernetes(theirs, values) })
	}
	n.report(t, 90)
}

// sourceExpressions are the strings in sources that may be expressions.
func sourceExpressions(t *testing.T) []string {
	var all []string
	eachLine(t, "cel-spec.jsonl", func(line []byte) {
		var c struct{ Expr string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c.Expr)
	})
	for _, module := range []string{"github.com/google/cel-go", "k8s.io/apiserver", "k8s.io/apiextensions-apiserver"} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		dir := strings.TrimSpace(string(out))
		if err != nil || dir == "" {
			t.Logf("the sources of %s are not here: %v", module, err)
			continue
		}
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") || !strings.Contains(path, "cel") {
				return err
			}
			all = append(all, stringsIn(t, path)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stringsIn are the string literals of a Go source.
func stringsIn(t *testing.T, path string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && len(s) > 2 && len(s) < 2000 {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}
