package cel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
)

// request is an HTTP in memory, which notes what is asked of it.
type request struct {
	path, route, query string
	parameters, lines  [][2]string
	asked              int
}

func (r *request) Path() string { r.asked++; return r.path }

func (r *request) Route() string { r.asked++; return r.route }

func (r *request) Query() string { r.asked++; return r.query }

func (r *request) Parameters(yield func(name, raw string) bool) { r.each(r.parameters, yield) }

func (r *request) Lines(yield func(name, value string) bool) { r.each(r.lines, yield) }

func (r *request) each(pairs [][2]string, yield func(a, b string) bool) {
	r.asked++
	for _, p := range pairs {
		if !yield(p[0], p[1]) {
			return
		}
	}
}

func newRequest() *request {
	return &request{
		path: "/repos/octo/hello%20world", route: "/repos/{owner}/{repo}", query: "a=1&b=2&a=3&%63=d+e&flag",
		parameters: [][2]string{{"owner", "octo"}, {"repo", "hello%20world"}},
		lines:      [][2]string{{"X-Tenant", "t"}, {"Accept", "a/b"}, {"accept", "c/d"}},
	}
}

// Native plans and cel-go read the same of a request.
func TestHTTP(t *testing.T) {
	e, err := newAdmissionEnv(nil, nil, false, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ expression, want string }{
		{`http.path == '/repos/octo/hello%20world'`, "true"},
		{`http.route == '/repos/{owner}/{repo}'`, "true"},
		{`http.pathParameters.owner == 'octo' && http.pathParameters['repo'] == 'hello world'`, "true"},
		{`has(http.pathParameters.owner) && !has(http.pathParameters.name)`, "true"},
		{`http.pathParameters.name == ''`, "no such key: name"},
		{`http.pathParameters == {'owner': 'octo', 'repo': 'hello world'}`, "true"},
		{`http.query.a == ['1', '3'] && http.query['c'][0] == 'd e' && http.query.flag == ['']`, "true"},
		{`http.query.size() == 4 && !('x' in http.query)`, "true"},
		{`http.query[?'x'].orValue(['y'])[0] == 'y'`, "true"},
		{`http.query.all(name, http.query[name].all(v, v.size() < 4))`, "true"},
		{`http.headers['accept'] == ['a/b', 'c/d'] && http.headers['x-tenant'].size() == 1`, "true"},
		{`'Accept' in http.headers`, "false"},
		{`http.headers.exists(name, name == 'x-tenant')`, "true"},
		{`http.headers['accept'].join(' ').matches('^a/b c/d$')`, "true"},
		{`http.headers['accept'][2] == ''`, "index out of bounds"},
		{`http == http`, "true"},
		{`[1].exists(http, http == 1)`, "true"}, // a variable of a loop hides it
	} {
		ast, err := e.check(c.expression, celgo.BoolType)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		native, err := e.plan(c.expression, ast, nil)
		if err != nil {
			t.Fatal(err)
		}
		interpreted, _, err := e.interpreted(c.expression, ast, nil)
		if err != nil {
			t.Fatal(err)
		}
		if native.native == nil {
			t.Errorf("%s has no native plan: %v", c.expression, native.reason)
		}
		for name, p := range map[string]*Program{"native": native, "cel-go": interpreted} {
			f := NewFrame(context.Background())
			f.Vars().SetHTTP(newRequest())
			ok, err := p.EvalBool(f, f.Vars())
			got := fmt.Sprint(ok)
			if err != nil {
				_, got, _ = strings.Cut(err.Error(), " resulted in error: ")
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("%s by %s: %s, want %s", c.expression, name, got, c.want)
			}
			f.Release()
		}
	}
}

// Nothing is asked of a request that no expression reads, and what is read counts.
func TestHTTPIsLazy(t *testing.T) {
	r := newRequest()
	r.query = strings.Repeat("x=1&", 10000)
	f := NewFrame(context.Background())
	defer f.Release()
	f.Vars().SetHTTP(r)
	for expression, units := range map[string]int64{`http != null || 1 == 1`: 0, `http.path != ''`: 1,
		`'a' in http.query`: 10000} {
		p, err := NewAdmissionCompiler(false).Condition(expression)
		if err != nil {
			t.Fatal(err)
		}
		before, asked := f.Budget(), r.asked
		if ok, err := p.EvalBool(f, f.Vars()); err != nil && !ok {
			t.Fatal(expression, err)
		}
		if spent := before - f.Budget(); spent < units || units < 10 && spent > 20 {
			t.Errorf("%s costs %d", expression, spent)
		}
		if (units > 0) != (r.asked > asked) {
			t.Errorf("%s asks %d times", expression, r.asked-asked)
		}
	}
}

// Rate limits and type checks know the variable, and its members.
func TestHTTPIsDeclared(t *testing.T) {
	if _, err := (RequestCompiler{}).Key("http.pathParameters.owner + http.headers['x'][0]"); err != nil {
		t.Error(err)
	}
	if _, err := (RequestCompiler{}).Key("http.header['x'][0]"); err == nil ||
		!strings.Contains(err.Error(), "undefined field 'header'") {
		t.Error(err)
	}
	c, err := NewTypeChecker(TypedVariables{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(Parse("http.query.a[0] == 1")); err == nil ||
		!strings.Contains(err.Error(), "no matching overload") {
		t.Error(err)
	}
}
