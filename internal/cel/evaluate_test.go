package cel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

func condition(t testing.TB, expression string) *Program {
	t.Helper()
	p, err := NewAdmissionCompiler(true).Condition(expression)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// verdictOn evaluates a condition about an object.
func verdictOn(t testing.TB, expression, object string) (bool, error) {
	t.Helper()
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().Set(value.Object, celtest.Parse(t, object), nil)
	return condition(t, expression).EvalBool(f, f.Vars())
}

func causeOf(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	return [...]string{"Failed", "OverLimit", "OverBudget", "Cancelled", "Internal"}[e.Cause]
}

// TestErrorIsNotFalse: hostile-input.md, Policies.
func TestErrorIsNotFalse(t *testing.T) {
	for _, c := range []struct{ expression, object, want string }{
		{`object.spec.x < 5`, `{"spec":{"x":"a"}}`, "no such overload"},
		{`object.spec.x < 5`, `{"spec":{}}`, "no such key: x"},
		{`object.spec.x < 5`, `{"spec":{"x":9223372036854775808}}`,
			"invalid data, integer '9223372036854775808' is beyond 64 bits"},
		{`object.spec.x == 9007199254740993.0 || object.spec.x == 1`, `{"spec":{"x":99999999999999999999}}`,
			"invalid data, integer '99999999999999999999' is beyond 64 bits"},
		{`1 / object.spec.x == 1`, `{"spec":{"x":0}}`, "division by zero"},
		{`object.spec.x[1] == 1`, `{"spec":{"x":[1]}}`, "index out of bounds: 1"},
	} {
		t.Run(c.expression+" "+c.object, func(t *testing.T) {
			ok, err := verdictOn(t, c.expression, c.object)
			var e *Error
			if ok || !errors.As(err, &e) || e.Cause != value.Failed || e.Detail != c.want {
				t.Fatalf("got %v, %v, want error %q", ok, err, c.want)
			}
			if want := fmt.Sprintf("expression '%s' resulted in error: %s", c.expression, c.want); err.Error() != want {
				t.Errorf("error reads %q, want %q", err, want)
			}
		})
	}
}

// TestExactNumbers: no number is rounded on its way to an expression (VAL-5).
func TestExactNumbers(t *testing.T) {
	for expression, object := range map[string]string{
		`object.x == 9007199254740993 && object.x != 9007199254740992`: `{"x":9007199254740993}`,
		`object.x == 9223372036854775807`:                              `{"x":9223372036854775807}`,
		`object.x == -9223372036854775807 - 1`:                         `{"x":-9223372036854775808}`,
		`type(object.x) == double && object.x == 1.0`:                  `{"x":1.0}`,
		`type(object.x) == double && object.x == 1000`:                 `{"x":1e3}`,
		`type(object.x) == int && object.x == 0`:                       `{"x":-0}`,
	} {
		if ok, err := verdictOn(t, expression, object); !ok || err != nil {
			t.Errorf("%s with %s: %v, %v", expression, object, ok, err)
		}
	}
}

// hostile makes an object with a list of n strings of the given size.
func hostile(n, size int) string {
	item := `"` + strings.Repeat("a", size) + `",`
	return `{"s":"` + strings.Repeat("a", size) + `","l":[` + strings.TrimSuffix(strings.Repeat(item, n), ",") + `]}`
}

// TestLimit: what an expression may do is bounded, whatever it does it with.
func TestLimit(t *testing.T) {
	ten := `[0,1,2,3,4,5,6,7,8,9]`
	loops := func(list string, depth int) string {
		expression := "true"
		for i := range depth {
			expression = fmt.Sprintf("%s.all(v%d, %s)", list, i, expression)
		}
		return expression
	}
	for _, c := range []struct {
		name, expression, object string
		want                     string
	}{
		{"literal loops, ten thousand rounds", loops(ten, 4), `{}`, ""},
		{"literal loops, ten million rounds", loops(ten, 7), `{}`, "OverLimit"},
		{"ranges", `lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))`, `{}`, "OverLimit"},
		{"a long range", `lists.range(1000000).size() + lists.range(1000000).size() > 0`, `{}`, "OverLimit"},
		{"a list of the object in itself", `object.l.all(x, object.l.all(y, x == y))`, hostile(3000, 1), "OverLimit"},
		{"the same with few items", `object.l.all(x, object.l.all(y, x == y))`, hostile(200, 1), ""},
		{"indexes", `object.l.all(i, x, object.l.all(j, y, object.l[i] == object.l[j]))`, hostile(2000, 1),
			"OverLimit"},
		{"reading backwards", `lists.range(1000).all(i, object.l[999 - i] == 'a')`, hostile(1000, 1), ""},
		{"one long string in each round", `object.l.all(x, object.s.contains('b') || object.s.contains('c') || object.s.contains('d') || object.s.contains('e') || true)`, hostile(300, 10000), "OverLimit"},
		{"an outer item in each inner round", `object.l.all(x, lists.range(1000).all(i, x.contains('b') || true))`,
			hostile(3, 50000), "OverLimit"},
		{"doubling", `[object.s].map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x).map(x, x+x)[0].size() > 0`, hostile(1, 50000), "OverLimit"},
		{"replacing each byte", `object.s.replace('a', object.s).size() > 0`, hostile(1, 50000), "OverLimit"},
		{"replacing a few", `'a-b-c'.replace('-', object.s).size() > 0`, hostile(1, 50), ""},
		{"a pattern from the object", `object.s.matches(object.s)`, hostile(1, 50000), "OverLimit"},
		{"a long pattern", `object.s.matches('` + strings.Repeat("(a|b)?", 200) + `')`, hostile(1, 200000),
			"OverLimit"},
		{"sets", `sets.contains(object.l.map(x, x), object.l.map(x, x))`, hostile(5000, 1), "OverLimit"},
		{"distinct", `object.l.map(x, x + 'b').distinct().size() == 1`, hostile(20000, 1), "OverLimit"},
		{"sorting", `object.l.sort().size() > 0`, hostile(5000, 1), ""},
		{"formatting more digits than are printed", `'%.90000000f'.format([1.0]).size() > 0`, `{}`, ""},
		{"formatting many digits", `lists.range(1000).all(i, '%.65000e%.65000e'.format([1.0, 2.0]) != '')`, `{}`,
			"OverLimit"},
		{"joining", `lists.range(30).map(i, object.l.join(',')).join(',').size() > 0`, hostile(10, 50000), "OverLimit"},
		{"comparing computed lists", `lists.range(1000).all(i, object.l.map(x, x) == object.l.map(x, x))`,
			hostile(1000, 1), "OverLimit"},
		{"flattening", `lists.range(3000).map(i, object.l).flatten().size() > 0`, hostile(3000, 1), "OverLimit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := verdictOn(t, c.expression, c.object)
			if c.want == "" && err != nil || c.want != "" && causeOf(err) != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestSharedBudget: expressions of one policy share a budget, and the cost of an expression is not absorbed by logic.
func TestSharedBudget(t *testing.T) {
	p := condition(t, `object.l.all(x, x == 'a') || true`)
	n := celtest.Parse(t, hostile(1000, 1))
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().Set(value.Object, n, nil)
	f.SetBudget(15_000)
	evaluations := 0
	var err error
	for ; err == nil && evaluations < 100; evaluations++ {
		_, err = p.EvalBool(f, f.Vars())
	}
	if causeOf(err) != "OverBudget" || evaluations < 2 || evaluations > 5 {
		t.Errorf("stopped by %v after %d evaluations", err, evaluations)
	}
	if !strings.HasPrefix(err.Error(), "validation failed due to running out of cost budget") {
		t.Errorf("error reads %q", err)
	}
	if f.Budget() != 0 {
		t.Errorf("budget left: %d", f.Budget())
	}
	if _, err := p.EvalBool(f, f.Vars()); causeOf(err) != "OverBudget" {
		t.Errorf("evaluated without a budget: %v", err)
	}
	f.SetBudget(PolicyBudget)
	if ok, err := p.EvalBool(f, f.Vars()); !ok || err != nil {
		t.Errorf("a new budget: %v, %v", ok, err)
	}
}

// TestCancelled: an evaluation ends with the request.
func TestCancelled(t *testing.T) {
	p := condition(t, `object.l.all(x, object.l.all(y, x == y))`)
	n := celtest.Parse(t, hostile(900, 1))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancelExpired := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancelExpired()
	for name, ctx := range map[string]context.Context{"context cancelled": cancelled, "deadline passed": expired} {
		f := NewFrame(ctx)
		f.Vars().Set(value.Object, n, nil)
		_, err := p.EvalBool(f, f.Vars())
		if causeOf(err) != "Cancelled" {
			t.Errorf("%s: %v", name, err)
		}
		f.Release()
	}
	f := NewFrame(context.Background())
	defer f.Release()
	f.SetDeadline(time.Now().Add(-time.Second))
	f.Vars().Set(value.Object, n, nil)
	if _, err := p.EvalBool(f, f.Vars()); causeOf(err) != "Cancelled" {
		t.Errorf("deadline set: %v", err)
	}
	// Many cheap expressions are looked at as well as a dear one.
	cheap := condition(t, `object.s == 'a'`)
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		_, err = cheap.EvalBool(f, f.Vars())
	}
	if causeOf(err) != "Cancelled" {
		t.Errorf("many cheap expressions: %v", err)
	}
}

type panicking struct{ interpreter.InterpretableV2 }

func (panicking) Exec(*interpreter.ExecutionFrame) ref.Val { panic("broken") }

// TestPanic: a panic is an error, and the Frame can be used again.
func TestPanic(t *testing.T) {
	good := condition(t, `object.s == 'a'`)
	bad := &Program{source: "broken", plan: panicking{}}
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().Set(value.Object, celtest.Parse(t, `{"s":"a"}`), nil)
	if _, err := bad.EvalBool(f, f.Vars()); causeOf(err) != "Internal" {
		t.Errorf("got %v", err)
	}
	if ok, err := good.EvalBool(f, f.Vars()); !ok || err != nil {
		t.Errorf("after a panic: %v, %v", ok, err)
	}
}

// TestVariables: variables are evaluated when they are read, once, and their errors are values.
func TestVariables(t *testing.T) {
	c := NewAdmissionCompiler(false)
	for _, v := range [][2]string{
		{"items", `object.l.map(x, x + '!')`},
		{"first", `variables.items[0]`},
		{"broken", `object.missing.x`},
		{"loop", `dyn(variables).loop`},
		{"unused", `object.l.all(x, object.l.all(y, object.l.all(z, x == y && y == z)))`},
	} {
		if err := c.Variable(v[0], v[1]); err != nil {
			t.Fatal(v[0], err)
		}
	}
	n := celtest.Parse(t, hostile(200, 1))
	for expression, want := range map[string]string{
		`variables.first == 'a!'`: "true",
		`variables.items.size() == 200 && variables.items[199] == 'a!'`: "true",
		`variables.broken == 1`:         `composited variable "broken" fails to evaluate: no such key: missing`,
		`true || variables.broken == 1`: "true",
		`variables.loop == 1`:           `composited variable "loop" fails to evaluate: a variable refers to itself`,
		`variables.unused`:              `composited variable "unused" fails to evaluate: operation cancelled: actual cost limit exceeded; shorten object.l, which has 200 items`,
		`has(variables.first)`:          "true",
	} {
		t.Run(expression, func(t *testing.T) {
			p, err := c.Condition(expression)
			if err != nil {
				t.Fatal(err)
			}
			f := NewFrame(context.Background())
			defer f.Release()
			f.Vars().Set(value.Object, n, nil)
			f.OpenVariables(f.Vars(), c.Variables())
			defer f.CloseVariables(f.Vars())
			for range 2 {
				ok, err := p.EvalBool(f, f.Vars())
				got := fmt.Sprint(ok)
				if e, failed := err.(*Error); failed {
					got = e.Detail
				}
				if got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	if _, err := c.MatchCondition(`variables.first == 'a'`); err == nil {
		t.Error("a match condition may refer to variables")
	}
}

// TestVariablesShareBudget: a variable that uses up the shared budget ends the expression that reads it.
func TestVariablesShareBudget(t *testing.T) {
	c := NewAdmissionCompiler(false)
	if err := c.Variable("v", `object.l.all(x, x == 'a')`); err != nil {
		t.Fatal(err)
	}
	p, err := c.Condition(`true || variables.v`)
	if err != nil {
		t.Fatal(err)
	}
	q, err := c.Condition(`variables.v || true`)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().Set(value.Object, celtest.Parse(t, hostile(1000, 1)), nil)
	f.SetBudget(500)
	f.OpenVariables(f.Vars(), c.Variables())
	defer f.CloseVariables(f.Vars())
	if ok, err := p.EvalBool(f, f.Vars()); !ok || err != nil {
		t.Errorf("not read: %v, %v", ok, err)
	}
	if _, err := q.EvalBool(f, f.Vars()); causeOf(err) != "OverBudget" {
		t.Errorf("read: %v", err)
	}
}

// TestRequest: what policies see of a request, present and absent as in a decoded AdmissionRequest.
func TestRequest(t *testing.T) {
	full := &Request{
		Group: "apps", Version: "v1", Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: "deployments", Subresource: "status", Namespace: "team-a", Name: "web",
		Operation: "UPDATE", DryRun: true,
		User: User{Name: "jane", UID: "1", Groups: []string{"dev", "ops"},
			Extra: map[string][]string{"scopes": {"a", "b"}}},
		Options: GivenOptions(celtest.Parse(t, `{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions","fieldManager":"kubectl"}`)),
	}
	bare := &Request{Version: "v1", Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Resource: "nodes",
		Operation: "CREATE"}
	for _, c := range []struct {
		request    *Request
		expression string
		want       string
	}{
		{full, `request.kind == {'group': 'apps', 'version': 'v1', 'kind': 'Deployment'}`, "no such overload"},
		{full, `request.kind.group == 'apps' && request.kind.version == 'v1' && request.kind.kind == 'Deployment'`, "true"},
		{full, `request.resource.resource == 'deployments' && request.requestResource.resource == 'deployments' && request.requestKind.kind == 'Deployment'`, "true"},
		{full, `request.subResource == 'status' && request.requestSubResource == 'status'`, "true"},
		{full, `request.name == 'web' && request.namespace == 'team-a' && request.operation == 'UPDATE' && request.dryRun`, "true"},
		{full, `request.userInfo.username == 'jane' && request.userInfo.uid == '1' && 'ops' in request.userInfo.groups`, "true"},
		{full, `request.userInfo.groups.all(g, g.size() == 3) && request.userInfo.extra['scopes'] == ['a', 'b']`, "true"},
		{full, `request.options.fieldManager == 'kubectl' && request.options.kind == 'UpdateOptions'`, "true"},
		{bare, `has(request.namespace) || has(request.subResource) || has(request.userInfo.username) || has(request.userInfo.groups)`, "false"},
		{bare, `has(request.name)`, "false"},
		{bare, `request.namespace == ''`, "no such key: namespace"},
		{bare, `request.dryRun`, "false"},
		{bare, `request.kind.group == '' && has(request.kind.group)`, "true"},
		{bare, `request.options == null`, "true"},
		{bare, `object == null && oldObject == null && params == null && namespaceObject == null`, "true"},
		{bare, `authorizer.path('/x').check('get').allowed()`, "no such attribute(s): authorizer"},
	} {
		t.Run(c.expression, func(t *testing.T) {
			p, err := NewAdmissionCompiler(true).Condition(c.expression)
			if err != nil {
				if c.want != "no such overload" {
					t.Fatal(err)
				}
				return // refused when it is compiled
			}
			f := NewFrame(context.Background())
			defer f.Release()
			f.Vars().SetRequest(c.request)
			f.Vars().SetLimited(&Request{Name: "of a limit"})
			ok, err := p.EvalBool(f, f.Vars())
			got := fmt.Sprint(ok)
			if e, failed := err.(*Error); failed {
				got = e.Detail
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

type headerMap map[string]string

func (h headerMap) Get(name string) (string, bool) { v, ok := h[name]; return v, ok }

func (h headerMap) Each(f func(name, value string) bool) {
	for name, value := range h {
		if !f(name, value) {
			return
		}
	}
}

// TestLimited: conditions and keys of rate limits.
func TestLimited(t *testing.T) {
	request := &Request{
		Group: "apps", Version: "v1", Resource: "deployments", Namespace: "team-a", Verb: "list",
		Path:          "/apis/apps/v1/namespaces/team-a/deployments",
		ClientAddress: "192.0.2.7", Headers: headerMap{"x-tenant": "blue", "accept": "application/json"},
		User:  User{Name: "jane", Groups: []string{"dev"}},
		Query: "limit=500&a+b=1&%zz&a%20b=2", BodyBytes: 2048,
	}
	var c RequestCompiler
	for expression, want := range map[string]string{
		`request.verb in ['get', 'list'] && request.resource.resource == 'deployments'`: "true",
		`request.clientAddress.startsWith('192.0.2.') && request.path.endsWith('s')`:    "true",
		`request.headers['x-tenant'] == 'blue' && 'accept' in request.headers`:          "true",
		`request.headers['x-other'] == 'blue'`:                                          "no such key: x-other",
		`request.headers[?'x-other'].orValue('') == '' && request.headers.size() == 2`:  "true",
		`request.headers.exists(h, h == 'x-tenant' && request.headers[h] == 'blue')`:    "true",
		`request.name == '' && request.subResource == '' && request.userInfo.uid == ''`: "true",
		`cidr('192.0.2.0/24').containsIP(request.clientAddress)`:                        "true",
		`request.userInfo.groups == ['dev'] && request.userInfo.extra.size() == 0`:      "true",
		`request.client.address == request.clientAddress`:                               "true",
		`request.query['limit'] == '500' && request.query['a b'] == '1, 2'`:             "true",
		`request.query['%zz'] == '' && !('none' in request.query)`:                      "true",
		`request.query.map(k, k + '=' + request.query[k]).size() == 3`:                  "true",
		`request.query['none'] == ''`:                                                   "no such key: none",
		`int(request.query['limit']) + request.bodyBytes == 2548`:                       "true",
	} {
		p, err := c.Condition(expression)
		if err != nil {
			t.Fatal(expression, err)
		}
		f := NewFrame(context.Background())
		f.Vars().SetLimited(request)
		f.Vars().SetRequest(&Request{Name: "of admission"}) // both are bound while a request is admitted
		ok, err := p.EvalBool(f, f.Vars())
		got := fmt.Sprint(ok)
		if e, failed := err.(*Error); failed {
			got = e.Detail
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
		f.Release()
	}
	key, err := c.Key(`request.namespace + '/' + request.headers[?'x-tenant'].orValue('none')`)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().SetLimited(request)
	if got, err := key.EvalString(f, f.Vars()); got != "team-a/blue" || err != nil {
		t.Errorf("key %q, %v", got, err)
	}
	cost, err := c.Cost(`request.verb == 'list' ? int(request.query['limit']) / 100 : 1`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cost.EvalInt(f, f.Vars()); got != 5 || err != nil {
		t.Errorf("cost %d, %v", got, err)
	}
	if _, err := c.Cost(`'1'`); err == nil {
		t.Error("a cost may be a string")
	}
	for _, bad := range []string{`request.object == 1`, `object == null`, `1`, `request.verb`} {
		if _, err := c.Condition(bad); err == nil {
			t.Errorf("%s compiles", bad)
		}
	}
	if _, err := c.Key(`1`); err == nil {
		t.Error("a key may be a number")
	}
}

// TestEdited: expressions see a document as it is now.
func TestEdited(t *testing.T) {
	d, err := document.Parse([]byte(`{"spec":{"a":1},"l":[1,2]}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	spec, _ := d.Root().Get("spec")
	d.Set(spec, "b", []byte(`{"c":[3]}`))
	d.Set(spec, "a", []byte(`"x"`))
	l, _ := d.Root().Get("l")
	d.Append(l, []byte(`5`))
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().Set(value.Object, d.Root(), nil)
	p := condition(t, `object.spec.a == 'x' && object.spec.b == {'c': [3]} && object.l == [1, 2, 5] && object.l[2] == 5 && object.spec.size() == 2`)
	if ok, err := p.EvalBool(f, f.Vars()); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
}

// TestPanicWhilePlanning: an expression over which cel-go panics when it plans it does not compile.
func TestPanicWhilePlanning(t *testing.T) {
	_, err := NewAdmissionCompiler(false).Condition(`{b'a': 1}.size() == 1`)
	var refused *CompileError
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Detail, "program instantiation failed: ") {
		t.Errorf("got %v", err)
	}
}
