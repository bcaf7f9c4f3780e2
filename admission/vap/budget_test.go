package vap

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kadmission "k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// A spending is a policy whose validations cost what the object says, and an object.
type spending struct {
	variables   []admissionv1.Variable
	validations []admissionv1.Validation
	ignore      bool
	object      map[string]any
}

// costlyValues are expressions of numbers whose cost the members of the object's spec decide.
var costlyValues = []string{
	`lists.range(object.spec.n).size()`,
	`lists.range(object.spec.n).filter(i, i >= 0).size()`,
	`lists.range(object.spec.n).map(i, i).size()`,
	`lists.range(int('20')).map(i, lists.range(object.spec.n).size()).sum()`,
	`lists.range(object.spec.n).slice(0, object.spec.m).size()`,
	`lists.range(object.spec.m).reverse().size()`,
	`object.spec.l.filter(a, object.spec.l.exists(b, a != b)).size()`,
	`object.spec.l.distinct().size()`,
	`object.spec.l.sort().size()`,
	`object.spec.l.map(a, [a, a]).flatten().size()`,
	`object.spec.l.slice(0, object.spec.n).size()`,
	`(sets.contains(object.spec.l, object.spec.l) ? 1 : 0)`,
	`(sets.intersects(object.spec.l, [-1, -2, -3]) ? 1 : 0)`,
	`(object.spec.s.matches('^(ab|cd|ef)*x?(gh|ij|kl){1,9}$') ? 1 : 0)`,
	`(object.spec.s.matches(object.spec.p) ? 1 : 0)`,
	`object.spec.s.findAll('[a-f]').size()`,
	`object.spec.s.split('a').size()`,
	`object.spec.s.split('').join(object.spec.p).size()`,
	`object.spec.s.replace('a', object.spec.p).size()`,
	`object.spec.s.substring(0, object.spec.m).size()`,
	`'%s-%d'.format([object.spec.s, object.spec.n]).size()`,
	`(object.spec.s.upperAscii() + object.spec.s).size()`,
	`(format.dns1123Subdomain().validate(object.spec.s).hasValue() ? 1 : 0)`,
	`(authorizer.group('').resource('pods').name(object.spec.p).check('use').allowed() ? 1 : 0)`,
	`object.spec.l.map(i, authorizer.group('').resource('pods').check('get').allowed()).size()`,
	`object.spec.m`,
}

// numbers are what clients may send as n and m.
var spentNumbers = []int64{
	0, 1, 7, 40, 1000, 30_000, 200_000, 400_000, 900_000, 999_990, 999_999, 1_000_000, 1_000_001, 9_999_000, 9_999_999,
	10_000_000, 20_000_000,
	2_147_483_647, 2_147_483_648, 1 << 53, 9_223_372_036_854_775_807, -1, -9_223_372_036_854_775_808,
}

// spendingOf makes a policy and an object of bytes.
func spendingOf(seed []byte) *spending {
	pick := func(n int) int {
		if len(seed) == 0 {
			return 0
		}
		b := int(seed[0])
		seed = seed[1:]
		return b % n
	}
	value := func() string { return costlyValues[pick(len(costlyValues))] }
	s := &spending{ignore: pick(2) == 0}
	for i := range pick(3) {
		s.variables = append(s.variables, admissionv1.Variable{Name: fmt.Sprint("v", i), Expression: value()})
	}
	operand := func() string {
		if n := len(s.variables); n > 0 && pick(3) == 0 {
			return "variables." + s.variables[pick(n)].Name
		}
		return value()
	}
	for range 1 + pick(12) {
		var e string
		switch pick(6) {
		case 0:
			e = "object.spec.ok == true"
		case 1:
			e = operand() + " + " + operand() + " >= 0"
		case 2:
			e = "object.spec.ok || " + operand() + " >= 0"
		default:
			e = operand() + " >= 0"
		}
		s.validations = append(s.validations, admissionv1.Validation{Expression: e})
	}
	list := make([]any, []int{0, 1, 20, 300, 900, 2000}[pick(6)])
	for i := range list {
		if list[i] = int64(i % 211); len(list) < 1000 && pick(2) == 0 {
			list[i] = int64(pick(9))
		}
	}
	s.object = map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "team-a"},
		"spec": map[string]any{
			"n": spentNumbers[pick(len(spentNumbers))], "m": spentNumbers[pick(len(spentNumbers))], "ok": pick(2) == 0,
			"l": list,
			"s": strings.Repeat([]string{"a", "ab", "abcdef", "é"}[pick(4)], []int{0, 3, 100, 4000, 20_000}[pick(5)]),
			"p": strings.Repeat([]string{"a", "(a|b)?", "x"}[pick(3)], []int{1, 3, 20}[pick(3)]),
		},
	}
	return s
}

// A paid is what became of an expression, and the budget after it.
type paid struct {
	value string // or what is wrong; "" if there was no budget for it
	left  int64
}

// outOfBudget is the error of expressions that the budget does not allow for.
const outOfBudget = "validation failed due to running out of cost budget, no further validation rules will be run"

// kubernetes evaluates the validations in kube-apiserver's plugin, up to the one for which the budget is too small.
func (s *spending) kubernetes(t *testing.T) []paid {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range s.variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, declared,
			environment.StoredExpressions)
	}
	var all []plugincel.ExpressionAccessor
	for _, v := range s.validations {
		all = append(all, &validating.ValidationCondition{Expression: v.Expression})
	}
	gvr, gvk := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	object := &unstructured.Unstructured{Object: s.object}
	record := kadmission.NewAttributesRecord(object, nil, gvk, "team-a", "web", gvr, "", kadmission.Create, nil, false,
		&user.DefaultInfo{Name: "jane"})
	versioned, err := kadmission.NewVersionedAttributes(record, gvk, interfaces{})
	if err != nil {
		t.Fatal(err)
	}
	request := plugincel.CreateAdmissionRequest(record, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(gvk))
	var found []paid
	for i := range all { // of the validations before one that is too dear the plugin tells nothing
		results, left, err := compiler.CompileCondition(all[:i+1], declared, environment.StoredExpressions).
			ForInput(context.Background(), versioned, request,
				plugincel.OptionalVariableBindings{Authorizer: reviewer{}}, nil, cel.PolicyBudget)
		if err != nil {
			if err.Error() != outOfBudget {
				t.Fatal(err)
			}
			return append(found, paid{})
		}
		if r := results[i]; r.Error != nil {
			found = append(found, paid{r.Error.Error(), left})
		} else {
			found = append(found, paid{fmt.Sprint(r.EvalResult.Value()), left})
		}
	}
	return found
}

// ours evaluates the validations here, all of them.
func (s *spending) ours(t *testing.T, p *Policy) []paid {
	t.Helper()
	a := attributesOf(t, "POST", deployments, json.RawMessage(s.json(t)), nil)
	a.User = &identity.User{Name: "jane"}
	a.Lookup = &admissiontest.Lookup{Authz: reviewer{}}
	a.Bind()
	f, v := a.Frame, a.Frame.Vars()
	f.SetBudget(cel.PolicyBudget)
	p.OpenVariables(f, v)
	defer p.CloseVariables(f, v)
	found := make([]paid, len(p.validations))
	for i := range p.validations {
		before, spent := f.Budget(), f.Spent()
		is, err := p.validations[i].program.EvalBool(f, v)
		found[i] = paid{fmt.Sprint(is), f.Budget()}
		if err != nil {
			found[i].value = err.Error()
		}
		if found[i].value == outOfBudget {
			found[i].value = ""
		}
		most := int64(cel.ExpressionLimit) * int64(1+len(s.variables))
		if used := before - f.Budget(); used < 0 || used > most || f.Spent()-spent != used {
			t.Errorf("%s takes %d units of the budget and says %d; the limit is %d", s.validations[i].Expression, used,
				f.Spent()-spent, most)
		}
	}
	return found
}

// beyond is what a validation may cost besides twice Kubernetes' price: a unit for ten bytes that are read as an
// argument, or made, and the sorting, for which Kubernetes counts nothing if it does not know the type of the items.
func (s *spending) beyond(expression string) int64 {
	spec := s.object["spec"].(map[string]any)
	items, text, with := int64(len(spec["l"].([]any))), int64(len(spec["s"].(string))), int64(len(spec["p"].(string)))
	units := 200 + 4*(items+text)
	for _, e := range append([]admissionv1.Variable{{Expression: expression}}, s.variables...) {
		units += int64(strings.Count(e.Expression, "replace(")+
			strings.Count(e.Expression, "join(")) * (text*(with+1)/10 + 1)
		units += int64(strings.Count(e.Expression, "sort(")) * 64 * items
	}
	return units
}

// cheaper are functions for which fewer units are counted than in Kubernetes, which counts the square of their lists.
var cheaper = regexp.MustCompile(`sets\.|distinct|sort|variables`)

const (
	overLimit = "operation cancelled: actual cost limit exceeded"
	// muchMade is Kubernetes' price of lists that may take more memory than what an expression may make.
	muchMade = value.MadeLimit / 64
)

// hold compares with kube-apiserver's plugin which validations are evaluated, what becomes of them, what they cost, and
// whether the request is denied. It returns how many validations were compared, and how many were over the limit.
func (s *spending) hold(t *testing.T) (compared, over int) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		Variables: s.variables, Validations: s.validations,
		MatchConstraints: &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"*"},
				Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			}}}},
	}
	if s.ignore {
		policy.Spec.FailurePolicy = new(admissionv1.Ignore)
	}
	stored(policy.Spec.MatchConstraints)
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "p",
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	bound, errs := CompileBinding(binding)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	compiled, errs := Compile(policy, bound)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	theirs, ours := s.kubernetes(t), s.ours(t, compiled)
	isExhausted, isStricter, dearest := false, false, int64(0)
	for i, k := range theirs {
		e, o := s.validations[i].Expression, ours[i]
		if isExhausted = k.value == ""; isExhausted {
			break
		}
		compared++
		price, cost := before(theirs, i)-k.left, before(ours, i)-o.left
		dearest = max(dearest, price) // maybe of a variable, which costs nothing again
		isOver := strings.Contains(o.value, overLimit)
		if isOver {
			over++
		}
		switch {
		case strings.Contains(k.value, overLimit):
			over++
		case o.value == k.value:
		case isOver && dearest > muchMade:
			isStricter = true
		default:
			t.Errorf("%s\n%s\ngot  %q\nwant %q", e, s.said(), o.value, k.value)
		}
		if most := 2*price + s.beyond(e); cost > most {
			t.Errorf("%s\n%s\ncosts %d units, at Kubernetes' prices %d; at most %d are expected", e, s.said(), cost,
				price, most)
		}
		if least := min(price, cel.ExpressionLimit)/2 - 200; cost < least && !strings.Contains(k.value, "error") &&
			!isOver && !cheaper.MatchString(e) {
			t.Errorf("%s\n%s\ncosts only %d units, at Kubernetes' prices %d", e, s.said(), cost, price)
		}
	}
	r := practiceRequest{operation: "CREATE", path: deployments, object: s.json(t)}
	want := r.kubernetes(t, hookOf(t, policy, []*admissionv1.ValidatingAdmissionPolicyBinding{binding}))
	got := r.ours(t, compiled, &admissiontest.Lookup{Authz: reviewer{}})
	isCostly := strings.Contains(want.message, overLimit) || strings.Contains(want.message, outOfBudget)
	if want.message != "" && got.message == "" && !isCostly {
		t.Errorf("%s\n%v\nis admitted; Kubernetes denies it: %s", s.said(), ours, want.message)
	}
	if got.message != "" && want.message == "" && !isExhausted && !isStricter {
		t.Errorf("%s\n%v\nis denied, and admitted by Kubernetes: %s", s.said(), ours, got.message)
	}
	return compared, over
}

// before is the budget before a validation.
func before(all []paid, i int) int64 {
	if i == 0 {
		return cel.PolicyBudget
	}
	return all[i-1].left
}

func (s *spending) json(t *testing.T) string {
	text, err := utiljson.Marshal(s.object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// said describes the policy and the object in short.
func (s *spending) said() string {
	spec := s.object["spec"].(map[string]any)
	var all []string
	for _, v := range s.variables {
		all = append(all, v.Name+": "+v.Expression)
	}
	return fmt.Sprintf("variables %v, n %v, m %v, %d items, %d and %d characters", all, spec["n"], spec["m"],
		len(spec["l"].([]any)), len(spec["s"].(string)), len(spec["p"].(string)))
}

// TestOneNumberEmptiesNoBudget: a number that the client sends, and that is more than lists.range takes, fails its own
// validation, and the others are evaluated.
func TestOneNumberEmptiesNoBudget(t *testing.T) {
	const tooLarge = "spec.n: expression 'lists.range(object.spec.n).all(i, i >= 0)' resulted in error: lists.range: size %s exceeds maximum allowed (1000000)"
	for _, failure := range []string{"Ignore", "Fail"} {
		p := policyOf(t, `
failurePolicy: `+failure+`
validations:
- {expression: "lists.range(object.spec.n).all(i, i >= 0)"}
- {expression: object.spec.ok == true, message: must be ok}
- {expression: object.spec.m == 1, message: must be one}
`)
		for n, isTooLarge := range map[string]bool{"3": false, "900000": true, "9999000": true, "10000000": true,
			"20000000": true, "9223372036854775807": true} {
			r := run(t, post(t, `{"spec":{"n":`+n+`,"ok":false,"m":2}}`), p)
			want := []string{"Invalid: spec.ok: must be ok", "Invalid: spec.m: must be one"}
			if isTooLarge && failure == "Fail" {
				text := "Invalid: " + fmt.Sprintf(tooLarge, n)
				if n == "900000" {
					text = "Invalid: expression 'lists.range(object.spec.n).all(i, i >= 0)' resulted in error: operation cancelled: actual cost limit exceeded; reduce object.spec.n, which is 900000"
				}
				want = append([]string{text}, want...)
			}
			if got := denials(r); !slices.Equal(got, want) {
				t.Errorf("%s, %s\ngot  %q\nwant %q", failure, n, got, want)
			}
		}
	}
}

// TestBudgets compares what validations cost with kube-apiserver's plugin, those that exceed their limit among them.
func TestBudgets(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 43))
	compared, over := 0, 0
	for range testutil.Amount(40, 20) {
		c, o := spendingOf(seedOf(random)).hold(t)
		compared, over = compared+c, over+o
	}
	if compared < 60 || over < 3 {
		t.Errorf("only %d validations were compared, %d of them exceed the limit", compared, over)
	}
}

func seedOf(random *rand.Rand) []byte {
	seed := make([]byte, 100)
	for i := range seed {
		seed[i] = byte(random.UintN(256))
	}
	return seed
}

// FuzzBudgets does the same as TestBudgets with policies and objects made of bytes.
func FuzzBudgets(f *testing.F) {
	random := rand.New(rand.NewPCG(43, 14))
	for range 6 {
		f.Add(seedOf(random))
	}
	f.Fuzz(func(t *testing.T, seed []byte) { spendingOf(seed).hold(t) })
}
