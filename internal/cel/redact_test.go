package cel

import (
	"context"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// TestErrorsTellNothingOfOthers: ERR-7: an expression that fails on parameters, states or
// namespaces does not show what they hold; one that fails on the request's own object does.
func TestErrorsTellNothingOfOthers(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{`url(object.word).getHost() == ''`, `URL parse error during conversion from string: parse "mine": invalid URI for request`},
		{`object[object.word] == 1`, `no such key: mine`},

		{`int(params.word) > 0`, `type conversion error from 'string' to 'int'`},
		{`object[params.word] == 1`, `no such key`},
		{`params.absent == 1`, `no such key: absent`},
		{`params.nested.absent == 1`, `no such key: absent`},
		{`params.word > 1`, `no such overload`},
		{`1 / (params.one - 1) > 0`, `division by zero`},
		{`params.list[params.one + 40] == 1`, `index out of range`},
		{`timestamp(params.word) > timestamp('2020-01-01T00:00:00Z')`,
			`type conversion error from 'string' to 'google.protobuf.Timestamp'`},
		{`quantity(params.word).isInteger()`, msgRedacted},
		{`variables.word == 'x'`, `composited variable "word" fails to evaluate: ` + msgRedacted},
		{`object[variables.plain] == 1`, `no such key`},
		{`int(namespaceObject.metadata.name) > 0`, `type conversion error from 'string' to 'int'`},
		{`int(state.things[0].word) > 0`, `type conversion error from 'string' to 'int'`},
		{`url(state.things[0].word).getHost() == ''`, msgRedacted},
		{`state.unknown.size() == 0`, `the state 'unknown' has not been read yet`},
	} {
		compiler := NewAdmissionCompiler(true)
		compiler.DeclareState([]string{"things", "unknown"})
		for _, v := range [][2]string{{"word", "url(params.word).getHost()"}, {"plain", "params.word"}} {
			if err := compiler.Variable(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		p, err := compiler.Condition(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		f := NewFrame(context.Background())
		v := f.Vars()
		v.Set(value.Object, celtest.Parse(t, `{"word":"mine"}`), nil)
		v.Set(value.Params, celtest.Parse(t, `{"word":"SECRET","one":1,"list":[],"nested":{}}`), nil)
		v.Set(value.NamespaceObject, celtest.Parse(t, `{"metadata":{"name":"SECRET"}}`), nil)
		v.SetStates(collections{"things": nodesOf(t, `{"word":"SECRET"}`)})
		f.OpenVariables(v, compiler.Variables())
		_, err = p.EvalBool(f, v)
		f.CloseVariables(v)
		f.Release()
		if err == nil {
			t.Errorf("%s does not fail", c.expression)
			continue
		}
		_, got, _ := strings.Cut(err.Error(), " resulted in error: ")
		if got != c.want || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %s\nwant %s", c.expression, got, c.want)
		}
	}
}
