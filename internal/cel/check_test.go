package cel

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// FuzzTyping: the types and the mistakes of an expression are those that cel-go finds in the same environment.
func FuzzTyping(f *testing.F) {
	for i, expression := range append([]string{
		`[1, 'a']`, `[1]`, `[?object.a]`, `[?optional.of(1), 'a']`, `{1: 'a', 'b': 'c'}`, `{'a': 1, 'b': 'c'}`,
		`{?'a': object.b}`, `'%d'.format(['a'])`, `'%d %s'.format([1])`, `'%s'.format([1, [2, 'a']])`,
		`duration('1h')`, `duration('x')`, `timestamp('2024-01-01T00:00:00Z')`, `timestamp('x')`, `'a'.matches('[')`,
		`object.a.matches('a+')`, `matches('a', '(')`, `object.none`, `nothing`, `self.spec.none`,
		`self.spec.replicas < 'a'`,
		`self.spec.list.all(x, x > 0)`, `self.spec.list.map(x, [x, 'a'])`,
		`self.spec.named.exists(n, n.name == self.spec.name)`, `type(self.spec) == map`, `google.protobuf.Timestamp{}`,
		`.object.a`, `self.spec.labels.?app.orValue('x') in ['a', 'b']`,
		`authorizer.requestResource.check('get').allowed()`, `namespaceObject.metadata.name + request.name`,
		`request.userInfo.groups.exists(g, g == 1)`, `Object{spec: Object.spec{replicas: 3}}`,
		`JSONPatch{op: 'add', path: '/a', value: 1}`, `jsonpatch.escapeKey('a/b')`,
		`object.a.all(i, x, i != x) && oldObject == null`, `1 + 1u`, `1 < 1.5`, `[[], ['a']]`, `{}`, `[]`,
		`cel.bind(a, object.x, a == 1)`, `quantity('1').isLessThan(quantity(object.a))`, `ip('1.2.3.4')`,
		`duration(object.a)`, `semver('1')`,
	}, celtest.AnyExpressions...) {
		f.Add(expression, []byte{byte(i), byte(i * 7), byte(i * 31), 3, 5, 9, 200, byte(i * 3)})
	}
	admission, err := newAdmissionEnv(nil, stateType([]string{"things"}), true, true)
	if err != nil {
		f.Fatal(err)
	}
	s := celtest.Structural(f, celtest.TypedSchema)
	c := ruleCompiler{node: s, typ: value.NewType(s, true),
		self: model.SchemaDeclType(s, true).MaybeAssignTypeName(selfTypeName)}
	rules, err := c.env(true)
	if err != nil {
		f.Fatal(err)
	}
	compiler := NewPatchCompiler(true)
	if _, err := compiler.JSONPatch(`[JSONPatch{op: 'add', path: '/a', value: 1}]`); err != nil {
		f.Fatal(err)
	}
	for _, e := range []*env{admission, rules, compiler.patches} {
		var names []string
		for _, v := range e.Validators() {
			names = append(names, v.Name())
		}
		if slices.Sort(names); !slices.Equal(names, slices.Sorted(slices.Values(validators))) {
			f.Errorf("the validators of an environment are %v, want those of the list", names)
		}
	}
	f.Fuzz(func(t *testing.T, expression string, seed []byte) {
		if len(expression) > 200 || len(seed) > 60 {
			return
		}
		for _, text := range []string{expression, celtest.OfTyped(seed).Value(3), celtest.OfObjects(seed).Value(3)} {
			for _, e := range []*env{admission, rules, compiler.patches} {
				compareTyping(t, e, text)
			}
		}
	})
}

// compareTyping checks an expression here and as cel-go does.
func compareTyping(t *testing.T, e *env, expression string) {
	got, gotIssues := e.Compile(expression)
	want, wantIssues := func() (ast *celgo.Ast, issues *celgo.Issues) {
		defer func() {
			if r := recover(); r != nil {
				ast, issues = nil, panicked(r)
			}
		}()
		return e.Env.Compile(expression)
	}()
	if gotIssues.Err() != nil || wantIssues.Err() != nil {
		if fmt.Sprint(gotIssues.Err()) != fmt.Sprint(wantIssues.Err()) {
			t.Errorf("%q: got %v, cel-go %v", expression, gotIssues.Err(), wantIssues.Err())
		}
		return
	}
	if gotIssues != nil || !reflect.DeepEqual(got.NativeRep(), want.NativeRep()) ||
		!reflect.DeepEqual(got.Source(), want.Source()) {
		t.Errorf("%q: got the types\n%v, cel-go\n%v", expression, got.NativeRep().TypeMap(), want.NativeRep().TypeMap())
	}
}
