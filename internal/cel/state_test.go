package cel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// collections are States in memory; what is nil is not known, and 'skipped' says to leave the policy out then.
type collections map[string][]document.Node

func (c collections) State(name string) ([]document.Node, error) {
	if objects, ok := c[name]; ok {
		return objects, nil
	}
	if name == "skipped" {
		return nil, ErrSkip
	}
	return nil, fmt.Errorf("the state '%s' has not been read yet", name)
}

func nodesOf(t testing.TB, texts ...string) []document.Node {
	t.Helper()
	nodes := make([]document.Node, len(texts))
	for i, text := range texts {
		nodes[i] = celtest.Parse(t, text)
	}
	return nodes
}

// TestState: a collection reads as a list of objects does.
func TestState(t *testing.T) {
	states := collections{
		"classes": nodesOf(t, `{"metadata":{"name":"fast","annotations":{"default":"true"}},"rank":1}`,
			`{"metadata":{"name":"slow"},"rank":2}`),
		"a-b.c": nodesOf(t, `{"x":1}`),
		"none":  {},
	}
	for _, c := range []struct{ expression, want string }{
		{`state.classes.size() == 2`, "true"},
		{`state.classes.exists(c, c.metadata.name == object.class)`, "true"},
		{`state.classes.filter(c, has(c.metadata.annotations) && c.metadata.annotations['default'] == 'true')[0].metadata.name == 'fast'`, "true"},
		{`state.classes.map(c, c.rank).sum() == 3`, "true"},
		{`state.classes[1].metadata.name == 'slow'`, "true"},
		{`state.classes[2].rank == 1`, "index out of range"},
		{`object in state.classes`, "false"},
		{`dyn({'metadata': dyn({'name': 'slow'}), 'rank': dyn(2)}) in state.classes`, "true"},
		{`state.classes == state.classes`, "true"},
		{`state.classes == [state.classes[0], state.classes[1]]`, "true"},
		{`state.classes + [{'rank': 3}] == state.classes`, "false"},
		{`(state.classes + [{'rank': 3}]).size() == 3`, "true"},
		{`state.classes.all(i, c, i == c.rank - 1)`, "true"},
		{`state.none.size() == 0 && state.none == []`, "true"},
		{`state.a__dash__b__dot__c[0].x == 1`, "true"},
		{`has(state.classes)`, "true"},
		{`type(state.classes) == list`, "true"},
		{`state.missing.size() == 0`, "the state 'missing' has not been read yet"},
		{`has(state.missing)`, "the state 'missing' has not been read yet"},
		{`true || state.missing.size() == 0`, "true"},
		{`state.missing.size() == 0 || true`, "true"},
		{`state.skipped.size() == 0 || true`, "skip"},
		{`variables.named == 'fast'`, "true"},
		{`variables.named == 'fast' && variables.all.size() == 2`, "true"},
	} {
		compiler := NewAdmissionCompiler(false)
		compiler.DeclareState([]string{"classes", "a-b.c", "none", "missing", "skipped"})
		for name, expression := range map[string]string{"named": "state.classes[0].metadata.name",
			"all": "state.classes"} {
			if err := compiler.Variable(name, expression); err != nil {
				t.Fatal(err)
			}
		}
		p, err := compiler.Condition(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		f := NewFrame(context.Background())
		v := f.Vars()
		v.Set(value.Object, celtest.Parse(t, `{"class":"fast"}`), nil)
		v.SetStates(states)
		f.OpenVariables(v, compiler.Variables())
		ok, err := p.EvalBool(f, v)
		got := fmt.Sprint(ok)
		if IsSkip(err) {
			got = "skip"
		} else if err != nil {
			_, got, _ = strings.Cut(err.Error(), " resulted in error: ")
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.expression, got, c.want)
		}
		f.CloseVariables(v)
		f.Release()
	}
}

// TestStateIsDeclared: an expression can only name a collection that there is.
func TestStateIsDeclared(t *testing.T) {
	compile := func(expression string, names ...string) error {
		c := NewAdmissionCompiler(false)
		c.DeclareState(names)
		_, err := c.Condition(expression)
		if err == nil {
			_, err = c.MatchCondition(expression)
		}
		return err
	}
	if err := compile("state.a.size() > 0", "a"); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		expression string
		names      []string
		want       string
	}{
		{"state.b.size() > 0", []string{"a"}, "undefined field 'b'"},
		{"state.a.size() > 0", nil, "^; the policy files must have a StateSource for each member of `state`"},
		{"state['a'].size() > 0", []string{"a"}, "no matching overload"},
	} {
		if err := compile(c.expression, c.names...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: %v, want %s", c.expression, c.names, err, c.want)
		}
	}
	for name, want := range map[string]bool{"a": true, "storage-classes": true, "a.b": true, "1a": false, "": false} {
		if StateName(name) != want {
			t.Errorf("StateName(%q) is not %v", name, want)
		}
	}
}

// TestStateCosts: reading a large collection counts, as reading the request's own object does.
func TestStateCosts(t *testing.T) {
	many := make([]document.Node, 200)
	one := celtest.Parse(t, `{"a":1}`)
	for i := range many {
		many[i] = one
	}
	c := NewAdmissionCompiler(false)
	c.DeclareState([]string{"many"})
	p, err := c.Condition("state.many.all(x, state.many.all(y, state.many.all(z, z.a == x.a && y.a == z.a)))")
	if err != nil {
		t.Fatal(err)
	}
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().SetStates(collections{"many": many})
	var failure *Error
	if _, err := p.EvalBool(f, f.Vars()); !errors.As(err, &failure) || failure.Cause != value.OverLimit {
		t.Errorf("8,000,000 comparisons ended with %v", err)
	}
}

// questioned answers by the question.
type questioned struct{ questions []string }

func (a *questioned) Authorize(_ context.Context, q authorizer.Attributes) (authorizer.Decision, string, error) {
	a.questions = append(a.questions, fmt.Sprintf("%s %s %s/%s/%s in '%s' named '%s' path '%s'", q.GetUser().GetName(),
		q.GetVerb(), q.GetAPIGroup(), q.GetResource(),
		q.GetSubresource(), q.GetNamespace(), q.GetName(), q.GetPath()))
	switch q.GetVerb() {
	case "allowed":
		return authorizer.DecisionAllow, "because", nil
	case "broken":
		return authorizer.DecisionNoOpinion, "", errors.New("nobody answers")
	}
	return authorizer.DecisionNoOpinion, "no rule", nil
}

// TestAuthorizer: what Kubernetes' library asks, and how it reads the answers.
func TestAuthorizer(t *testing.T) {
	for _, c := range []struct{ expression, want, question string }{
		{`authorizer.group('apps').resource('deployments').namespace('n').name('d').check('allowed').allowed()`, "true", "jane allowed apps/deployments/ in 'n' named 'd' path ''"},
		{`authorizer.group('').resource('pods').subresource('exec').check('create').allowed()`, "false", "jane create /pods/exec in '' named '' path ''"},
		{`authorizer.group('').resource('pods').check('create').reason() == 'no rule'`, "true",
			"jane create /pods/ in '' named '' path ''"},
		{`authorizer.path('/healthz').check('allowed').allowed()`, "true",
			"jane allowed // in '' named '' path '/healthz'"},
		{`authorizer.serviceAccount('a', 'b').path('/x').check('get').allowed()`, "false",
			"system:serviceaccount:a:b get // in '' named '' path '/x'"},
		{`authorizer.requestResource.check('allowed').allowed()`, "true",
			"jane allowed apps/deployments/scale in 'team-a' named 'web' path ''"},
		{`authorizer.requestResource.check('broken').allowed()`, "false",
			"jane broken apps/deployments/scale in 'team-a' named 'web' path ''"},
		{`authorizer.requestResource.check('broken').errored() && authorizer.requestResource.check('broken').error() == 'nobody answers'`, "true", "jane broken apps/deployments/scale in 'team-a' named 'web' path ''"},
		{`authorizer.group('').resource(' ').check('get').allowed()`, "resource must not be empty", ""},
	} {
		p, err := NewAdmissionCompiler(false).Condition(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		if !p.UsesAuthorizer() {
			t.Errorf("%s does not seem to use the authorizer", c.expression)
		}
		f := NewFrame(context.Background())
		v := f.Vars()
		v.SetRequest(&Request{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale",
			Namespace: "team-a", Name: "web", User: User{Name: "jane"}})
		a := &questioned{}
		v.SetAuthorizer(a)
		ok, err := p.EvalBool(f, v)
		got := fmt.Sprint(ok)
		if err != nil {
			_, got, _ = strings.Cut(err.Error(), " resulted in error: ")
		}
		question := ""
		if len(a.questions) > 0 {
			question = a.questions[0]
		}
		if got != c.want || question != c.question {
			t.Errorf("%s: %s after %q\nwant %s after %q", c.expression, got, question, c.want, c.question)
		}
		f.Release()
	}
}

// TestAuthorizerCosts: a third question in one expression is one too many, as in Kubernetes.
func TestAuthorizerCosts(t *testing.T) {
	check := func(n int) error {
		one := "authorizer.requestResource.check('allowed').allowed()"
		p, err := NewAdmissionCompiler(false).Condition(one + strings.Repeat(" && "+one, n-1))
		if err != nil {
			t.Fatal(err)
		}
		f := NewFrame(context.Background())
		defer f.Release()
		f.Vars().SetRequest(&Request{Resource: "pods"})
		f.Vars().SetAuthorizer(&questioned{})
		_, err = p.EvalBool(f, f.Vars())
		return err
	}
	if err := check(2); err != nil {
		t.Error(err)
	}
	var failure *Error
	if err := check(3); !errors.As(err, &failure) || failure.Cause != value.OverLimit {
		t.Errorf("three questions ended with %v", err)
	}
}
