package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// explain evaluates a condition that must be false and writes its explanation, one violation a
// line, items after a dash.
func explain(t testing.TB, p *cel.Program, x *Explanation, set func(*cel.Vars), variables *cel.Variables) string {
	t.Helper()
	f := cel.NewFrame(context.Background())
	defer f.Release()
	v := f.Vars()
	set(v)
	if variables != nil {
		f.OpenVariables(v, variables)
		defer f.CloseVariables(v)
	}
	ok, err := p.EvalBool(f, v)
	if ok || err != nil {
		return fmt.Sprintf("evaluates to %v, %v", ok, err)
	}
	return written(x.Explain(f, v))
}

func explainedCondition(t testing.TB, expression string) (*cel.Program, *Explanation) {
	t.Helper()
	p, x, err := NewCompiler(cel.NewAdmissionCompiler(true)).Condition(expression)
	if err != nil {
		t.Fatal(err)
	}
	return p, x
}

func written(violations []Violation) string {
	var lines []string
	for _, x := range violations {
		if x.Worded() {
			lines = append(lines, x.Error.Error())
		} else {
			lines = append(lines, fmt.Sprintf("%s: failed: %s", x.Error.Field, x.Source))
		}
		for _, item := range x.Items {
			lines = append(lines, "- "+item.Error())
		}
		if x.More > 0 {
			lines = append(lines, fmt.Sprintf("- and %d more", x.More))
		}
	}
	return strings.Join(lines, "\n")
}

// TestExplain: VAL-2, VAL-3: what is said about an object that does not meet a condition.
func TestExplain(t *testing.T) {
	const (
		object = `{"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"replicas": 12, "min": 3, "max": 2, "type": "Header", "s": "hello", "on": true,
			"containers": [{"name": "a", "image": "nginx", "ports": [{"p": 80}, {"p": 99}]}, {"name": "b", "image": "registry/x", "ports": []},
				{"name": "a", "image": "busybox"}],
			"names": ["x", "y"], "m": {"k1": "v1", "k2": "v2"},
			"job": {"template": {"metadata": {"labels": {"a": "c"}}, "spec": {"host": true, "os": "linux", "level": 7, "names": ["x"], "containers": [{"name": "c", "image": "nginx"}],
				"initContainers": [{"name": "d", "image": "registry/d"}, {"name": "e", "image": "busybox"}]}}}}}`
		old    = `{"metadata": {"name": "x"}, "spec": {"replicas": 13, "type": "Cookie", "s": "old", "names": ["x", "z"]}}`
		params = `{"max": 10, "allowed": ["SECRET1"], "denied": ["hello", "SECRET2", "nginx"]}`
	)
	variables := [][2]string{
		{"big", "object.spec.replicas > 20"},
		{"small", "object.spec.replicas < 2"},
		{"cs", "object.spec.containers"},
		{"all", "object.spec.containers + object.spec.?initContainers.orValue([])"},
		{"replicas", "object.spec.replicas"},
		{"ok", "has(object.spec.owner) && has(object.spec.min)"},
		{"pod", "object.spec.type == 'Pod' ? dyn(object) : object.spec.type == 'Cookie' ? dyn(object).template : object.spec.job.template"},
		{"podSpec", "variables.pod.spec"},
		{"podCS", "variables.podSpec.containers + variables.pod.spec.?initContainers.orValue([])"},
		{"level", "object.spec.type == 'Pod' ? object.spec.level : object.spec.job.template.spec.level"},
		{"elsewhere", "object.spec.type == 'Pod' ? object.spec : params"},
	}
	for _, c := range []struct{ expression, want string }{
		{`object.spec.replicas <= 10`,
			`spec.replicas: Invalid value: 12: must be less than or equal to 10`},
		{`10 >= object.spec.replicas`,
			`spec.replicas: Invalid value: 12: must be less than or equal to 10`},
		{`object.spec.replicas <= params.max`,
			"spec.replicas: Invalid value: 12: must be less than or equal to `params.max`"},
		{`params.max >= object.spec.replicas`,
			"spec.replicas: Invalid value: 12: must be less than or equal to `params.max`"},
		{`object.spec.replicas > 3 && object.spec.replicas < 10 && object.spec.min < 1`,
			`spec.replicas: Invalid value: 12: must be less than 10` + "\n" +
				`spec.min: Invalid value: 3: must be less than 1`},
		{`has(object.spec.owner)`,
			`spec.owner: Required value`},
		{`object.spec.type != 'Header' || has(object.spec.header)`,
			"spec.header: Required value: must be set when `spec.type` is 'Header'"},
		{`object.spec.type == 'Header' ? has(object.spec.header) : true`,
			"spec.header: Required value: must be set when `spec.type` is 'Header'"},
		{`!has(object.spec.replicas) || object.spec.replicas <= 10`,
			`spec.replicas: Invalid value: 12: must be less than or equal to 10`},
		{`object.spec.min <= object.spec.max`,
			"spec.min: Invalid value: 3: must be less than or equal to `spec.max`"},
		{`object.spec.type in ['A', 'B']`,
			`spec.type: Unsupported value: "Header": supported values: "A", "B"`},
		{`object.spec.type == 'A' || object.spec.type == 'B'`,
			`spec.type: Unsupported value: "Header": supported values: "A", "B"`},
		{`object.spec.type == 'A'`,
			`spec.type: Invalid value: "Header": must be 'A'`},
		{`!(object.spec.type in ['Header', 'B'])`,
			`spec.type: Invalid value: "Header": must not be 'Header' or 'B'`},
		{`object.spec.type == oldObject.spec.type`,
			`spec.type: Invalid value: "Header": field is immutable`},
		{`object.spec == oldObject.spec`,
			`spec: Invalid value: field is immutable`},
		{`request.operation != 'UPDATE' || object.spec.s == oldObject.spec.s`,
			`spec.s: Invalid value: "hello": field is immutable`},
		{`!has(oldObject.spec.s) || object.spec.s == oldObject.spec.s`,
			`spec.s: Invalid value: "hello": field is immutable`},
		{`object.spec.replicas >= oldObject.spec.replicas`,
			`spec.replicas: Invalid value: 12: must be greater than or equal to its previous value`},
		{`object.spec.containers.all(c, c.image.startsWith('registry/'))`,
			"spec.containers: Invalid value: must contain only items in which `image` starts with 'registry/'" + "\n" +
				`- spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`- spec.containers[2].image: Invalid value: "busybox": must start with 'registry/'`},
		{`object.spec.containers.all(c, c.image.startsWith('registry/') && c.name != 'b')`,
			"spec.containers: Invalid value: must contain only items in which `image` starts with 'registry/' and `name` is not 'b'" + "\n" +
				`- spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`- spec.containers[1].name: Invalid value: "b": must not be 'b'` + "\n" +
				`- spec.containers[2].image: Invalid value: "busybox": must start with 'registry/'`},
		{`object.spec.containers.all(c, has(c.ports) && c.ports.all(p, p.p < 90))`,
			"spec.containers: Invalid value: must contain only items in which `ports` is set and `ports` contains only items in which `p` is less than 90" + "\n" +
				`- spec.containers[0].ports[1].p: Invalid value: 99: must be less than 90` + "\n" +
				`- spec.containers[2].ports: Required value`},
		{`object.spec.containers.all(c, !has(c.ports) || c.ports.all(p, p.p < 90))`,
			"spec.containers: Invalid value: must contain only items in which `ports` contains only items in which `p` is less than 90" + "\n" +
				`- spec.containers[0].ports[1].p: Invalid value: 99: must be less than 90`},
		{`!object.spec.containers.exists(c, c.image == 'nginx')`,
			"spec.containers: Invalid value: must contain only items in which `image` is not 'nginx'" + "\n" +
				`- spec.containers[0].image: Invalid value: "nginx": must not be 'nginx'`},
		{`object.spec.containers.exists(c, c.name == 'sidecar' && c.image.startsWith('x'))`,
			"spec.containers: Invalid value: must contain an item in which `name` is 'sidecar' and `image` starts with 'x'"},
		{`object.spec.containers.all(c, object.spec.containers.exists_one(d, d.name == c.name))`,
			"spec.containers: Invalid value: must contain only items in which `name` is unique" + "\n" +
				`- spec.containers[0].name: Duplicate value: "a"` + "\n" +
				`- spec.containers[2].name: Duplicate value: "a"`},
		{`object.spec.containers.map(c, c.image).all(i, i.startsWith('registry/'))`,
			`spec.containers: Invalid value: must contain only items that start with 'registry/'` + "\n" +
				`- spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`- spec.containers[2].image: Invalid value: "busybox": must start with 'registry/'`},
		{`object.spec.containers.filter(c, c.name == 'a').all(c, c.image.startsWith('registry/'))`,
			"spec.containers: Invalid value: must contain only items in which `image` starts with 'registry/'" + "\n" +
				`- spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`- spec.containers[2].image: Invalid value: "busybox": must start with 'registry/'`},
		{`object.spec.names.all(n, n.matches('^y$'))`,
			`spec.names: Invalid value: must contain only items that match the regular expression '^y$'` + "\n" +
				`- spec.names[0]: Invalid value: "x": must match the regular expression '^y$'`},
		{`object.spec.m.all(k, k.startsWith('k1'))`,
			`spec.m: Invalid value: must contain only items that start with 'k1'` + "\n" +
				`- spec.m.k2: Invalid value: "k2": must start with 'k1'`},
		{`object.metadata.labels.all(k, object.metadata.labels[k] == 'c')`,
			`metadata.labels: Invalid value: must contain only keys in which the value is 'c'` + "\n" +
				`- metadata.labels[a]: Invalid value: "b": must be 'c'`},
		{`'team' in object.metadata.labels`,
			`metadata.labels[team]: Required value`},
		{`'x' in object.spec.names && 'z' in object.spec.names`,
			`spec.names: Invalid value: must contain 'z'`},
		{`size(object.spec.containers) <= 2`,
			`spec.containers: Too many: 3: must have at most 2 items`},
		{`object.spec.s.size() < 3`,
			`spec.s: Too long: must be at most 2 characters`},
		{`object.spec.s.size() > 10`,
			`spec.s: Invalid value: "hello": must be at least 11 characters`},
		{`!object.spec.on`,
			`spec.on: Invalid value: true: must be false`},
		{`object.spec.on == false`,
			`spec.on: Invalid value: true: must be false`},
		{`object.spec.on != true`,
			`spec.on: Invalid value: true: must not be true`},
		{`isIP(object.spec.s)`,
			`spec.s: Invalid value: "hello": must be a valid IP address`},
		{`!format.dns1123Label().validate(object.spec.type).hasValue()`,
			`spec.type: Invalid value: "Header": must be a valid DNS label`},
		{`quantity(object.spec.replicas == 12 ? '12' : '1').isLessThan(quantity('3'))`,
			"spec.replicas: Invalid value: `(spec.replicas == 12) ? \"12\" : \"1\"` must be less than '3'"},
		{`has(object.spec.a) || has(object.spec.b)`,
			"spec: Required value: must have at least one of `spec.a` and `spec.b`"},
		{`!(has(object.spec.min) && has(object.spec.max))`,
			"spec.max: Forbidden: may not be set when `spec.min` is set"},
		{`(has(object.spec.min) ? 1 : 0) + (has(object.spec.max) ? 1 : 0) == 1`,
			"spec: Invalid value: must have exactly one of `spec.min` and `spec.max`"},
		{`[has(object.spec.min), has(object.spec.max)].filter(x, x).size() <= 1`,
			"spec: Invalid value: must have at most one of `spec.min` and `spec.max`"},
		{`has(object.spec.min) == has(object.spec.foo)`,
			"spec: Invalid value: must have both of `spec.min` and `spec.foo` or neither"},
		{`object.spec.s == '' || object.spec.s.startsWith('x')`,
			`spec.s: Invalid value: "hello": must be empty or must start with 'x'`},
		{`object.spec.type == 'Header' ? object.spec.replicas < 5 : object.spec.replicas < 50`,
			"spec.replicas: Invalid value: 12: must be less than 5 when `spec.type` is 'Header'"},
		{`variables.big || variables.small`,
			`spec.replicas: Invalid value: 12: must be greater than 20 or must be less than 2`},
		{`variables.cs.all(c, c.image.startsWith('registry/'))`,
			"spec.containers: Invalid value: must contain only items in which `image` starts with 'registry/'" + "\n" +
				`- spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`- spec.containers[2].image: Invalid value: "busybox": must start with 'registry/'`},
		{`variables.all.all(c, c.image.startsWith('registry/'))`,
			"spec: Invalid value: must contain only items in which `image` starts with 'registry/'" + "\n" +
				`- spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`- spec.containers[2].image: Invalid value: "busybox": must start with 'registry/'`},
		{`variables.replicas < 5`,
			`spec.replicas: Invalid value: 12: must be less than 5`},
		{`variables.ok && object.spec.min > 0`,
			`spec.owner: Required value`},
		{`!variables.pod.spec.?host.orValue(false)`,
			`spec.job.template.spec.host: Invalid value: true: must be false`},
		{`variables.podSpec.?priority.orValue(0) > 0`,
			`spec.job.template.spec.priority: Required value: must be greater than 0`},
		{`'team' in variables.pod.metadata.labels && variables.pod.metadata.labels.all(k, variables.pod.metadata.labels[k] == 'b')`,
			`spec.job.template.metadata.labels[team]: Required value` + "\n" +
				"spec.job.template.metadata.labels: Invalid value: must contain only keys in which the value is 'b'" + "\n" +
				`- spec.job.template.metadata.labels[a]: Invalid value: "c": must be 'b'`},
		{`variables.podCS.all(c, c.image.startsWith('registry/'))`,
			"spec.job.template.spec: Invalid value: must contain only items in which `image` starts with 'registry/'" + "\n" +
				`- spec.job.template.spec.containers[0].image: Invalid value: "nginx": must start with 'registry/'` + "\n" +
				`- spec.job.template.spec.initContainers[1].image: Invalid value: "busybox": must start with 'registry/'`},
		{`variables.podSpec.containers.all(c, variables.pod.spec.os != 'linux' || c.image == 'a')`,
			"spec.job.template.spec.containers: Invalid value: must contain only items in which `image` is 'a' when `variables.pod.spec.os` is 'linux'" + "\n" +
				"- spec.job.template.spec.containers[0].image: Invalid value: \"nginx\": must be 'a' when `spec.job.template.spec.os` is 'linux'"},
		{`variables.pod.spec.names.all(n, n != 'x')`,
			`spec.job.template.spec.names: Invalid value: must contain only items that are not 'x'` + "\n" +
				`- spec.job.template.spec.names[0]: Invalid value: "x": must not be 'x'`},
		{`variables.pod.spec.host == object.spec.on && has(variables.pod.spec.a) == has(object.spec.a) && has(variables.pod.spec.a) != has(variables.pod.spec.os) && has(variables.podSpec.host) == has(object.spec.a)`,
			": failed: has(variables.podSpec.host) == has(object.spec.a)"},
		{`variables.level < 5`,
			"spec: Invalid value: `variables.level` must be less than 5"},
		{`variables.elsewhere.max > 12`,
			"spec: Invalid value: `variables.elsewhere.max` must be greater than 12"},
		{`oldObject.spec.names.all(n, n in variables.podSpec.names)`,
			"spec.job.template.spec.names: failed: oldObject.spec.names.all(n, n in variables.podSpec.names)"},
		{`object.spec.min + object.spec.max < 4`,
			"spec: Invalid value: `spec.min + spec.max` must be less than 4"},
		{`object.spec.s.lowerAscii() == 'x'`,
			"spec.s: Invalid value: `spec.s.lowerAscii()` must be 'x'"},
		{`['a', 'b'].exists(p, object.spec.s.startsWith(p))`,
			`spec.s: Invalid value: "hello": must start with 'a' or 'b'`},
		{`['h', 'b'].all(p, !object.spec.s.startsWith(p))`,
			`spec.s: Invalid value: "hello": must not start with 'h' or 'b'`},
		{`params.allowed.exists(p, object.spec.s.startsWith(p))`,
			"spec.s: Invalid value: \"hello\": must start with an item of `params.allowed`"},
		{`params.denied.all(p, object.spec.s != p)`,
			"spec.s: Invalid value: \"hello\": must not be equal to any item of `params.denied`"},
		{`object.spec.s in params.allowed`,
			"spec.s: Invalid value: \"hello\": must be one of `params.allowed`"},
		{`object.spec.?replica.orValue(0) > 1`,
			`spec.replica: Required value: must be greater than 1`},
		{`object.spec.?owner.orValue('') != ''`,
			`spec.owner: Required value: must not be empty`},
		{`has(object.spec.owner) ? object.spec.owner == 'a' : false`,
			`spec.owner: Required value`},
		{`request.operation == 'CREATE'`,
			": Invalid value: `request.operation` must be 'CREATE'"},
		{`false`,
			`: failed: false`},
		{`object.spec.containers.filter(c, c.name == 'a').size() <= 1`,
			"spec.containers: Invalid value: must contain at most one item in which `name` is 'a'"},
		{`object.spec.containers.exists(c, c.name == 'b') == false`,
			"spec.containers: Invalid value: must contain only items in which `name` is not 'b'" + "\n" +
				`- spec.containers[1].name: Invalid value: "b": must not be 'b'`},
		{`oldObject.spec.names.all(n, n in object.spec.names)`,
			`spec.names: Invalid value: must contain everything that it contained before`},
		{`object.spec.containers.all(i, c, i == 0 || c.image.startsWith('registry/'))`,
			"spec.containers: Invalid value: must contain only items in which `image` starts with 'registry/' when the key is not 0" + "\n" +
				`- spec.containers[2].image: Invalid value: "busybox": must start with 'registry/' when the key is not 0`},
		{`object.spec.m.all(k, v, v != 'v2')`,
			`spec.m: Invalid value: must contain only items in which the value is not 'v2'` + "\n" +
				`- spec.m.k2: Invalid value: "v2": must not be 'v2'`},
		{`object.spec.replicas == 1 || (object.spec.min < 2 && object.spec.max > 5)`,
			"spec.min: Invalid value: 3: must be less than 2 when `spec.replicas` is not 1" + "\n" +
				"spec.max: Invalid value: 2: must be greater than 5 when `spec.replicas` is not 1"},
		{`object.metadata.name.startsWith('team-') && object.metadata.?labels['app'].hasValue()`,
			`metadata.name: Invalid value: "x": must start with 'team-'` + "\n" +
				`metadata.labels[app]: Required value`},
		{`(object.spec.containers + object.spec.containers).all(c, c.name == 'b')`,
			"spec.containers: Invalid value: must contain only items in which `name` is 'b'" + "\n" +
				`- spec.containers[0].name: Invalid value: "a": must be 'b'` + "\n" +
				`- spec.containers[2].name: Invalid value: "a": must be 'b'`},
		{`!(object.spec.type == 'Header' && object.spec.replicas > 5)`,
			"spec.replicas: Invalid value: 12: must be less than or equal to 5 when `spec.type` is 'Header'"},
		{`object.spec.containers.all(c, params.denied.all(d, c.image != d))`,
			"spec.containers: Invalid value: must contain only items in which `image` differs from any item of `params.denied`" + "\n" +
				"- spec.containers[0].image: Invalid value: \"nginx\": must not be equal to any item of `params.denied`"},
		{`object.spec.containers.all(c, params.allowed.exists(d, c.image.startsWith(d)))`,
			"spec.containers: Invalid value: must contain only items in which `image` starts with an item of `params.allowed`" + "\n" +
				"- spec.containers[0].image: Invalid value: \"nginx\": must start with an item of `params.allowed`" + "\n" +
				"- spec.containers[1].image: Invalid value: \"registry/x\": must start with an item of `params.allowed`" + "\n" +
				"- spec.containers[2].image: Invalid value: \"busybox\": must start with an item of `params.allowed`"},
	} {
		compiler := NewCompiler(cel.NewAdmissionCompiler(true))
		for _, v := range variables {
			if err := compiler.Variable(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		p, x, err := compiler.Condition(c.expression)
		if err != nil {
			t.Error(err)
			continue
		}
		got := explain(t, p, x, func(v *cel.Vars) {
			v.Set(value.Object, celtest.Parse(t, object), nil)
			v.Set(value.OldObject, celtest.Parse(t, old), nil)
			v.Set(value.Params, celtest.Parse(t, params), nil)
			v.SetRequest(&cel.Request{Operation: "UPDATE"})
		}, compiler.Variables())
		if got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.expression, got, c.want)
		}
		if strings.Contains(got, "SECRET") {
			t.Errorf("ERR-7: %s shows values of parameters: %s", c.expression, got)
		}
	}
}

func compileRule(t testing.TB, schema, rule string, optionalOldSelf bool) (*cel.Rules, *Explanation) {
	t.Helper()
	rules, checked, errs := cel.CompileRules(
		apiextensionsv1.ValidationRules{{Rule: rule, OptionalOldSelf: &optionalOldSelf}}, celtest.Structural(t, schema),
		false, field.NewPath("x"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return rules, OfRules(checked)[0]
}

// TestExplainRules: what is said about values that do not meet a rule of a schema, whose types are known.
func TestExplainRules(t *testing.T) {
	for _, c := range []struct{ schema, rule, value, old, want string }{
		{`{"type":"object","properties":{"type":{"type":"string"},"header":{"type":"object"}}}`,
			`!has(self.header) || self.type == 'Header'`, `{"type":"Cookie","header":{}}`, ``,
			"type: Invalid value: \"Cookie\": must be 'Header' when `header` is set"},
		{`{"type":"object","properties":{"type":{"type":"string"},"header":{"type":"object"}}}`,
			`self.type == 'Header' ? has(self.header) : !has(self.header)`, `{"type":"Cookie","header":{}}`, ``,
			"header: Forbidden: may not be set when `type` is not 'Header'"},
		{`{"type":"string"}`, `self == oldSelf`, `"a"`, `"b"`, `: Invalid value: "a": field is immutable`},
		{`{"type":"integer"}`, `self >= oldSelf`, `1`, `2`,
			`: Invalid value: 1: must be greater than or equal to its previous value`},
		{`{"type":"string"}`, `duration(self) <= duration('1h')`, `"2h"`, ``,
			`: Invalid value: "2h": must be less than or equal to '1h'`},
		{`{"type":"object","additionalProperties":{"type":"string"}}`,
			`self.all(k, k.matches('^[a-z]+$') && self[k].size() < 3)`,
			`{"a":"long","B/c":"x"}`, ``,
			": Invalid value: must contain only keys that match the regular expression '^[a-z]+$' and in which the value has a size of at most 2\n" +
				"- [a]: Too long: must be at most 2 characters\n" +
				`- [B/c]: Invalid value: "B/c": must match the regular expression '^[a-z]+$'`},
		{`{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}}}`, `'team' in self.labels`,
			`{"labels":{}}`, ``, `labels[team]: Required value`},
		{`{"type":"array","items":{"type":"object","properties":{"port":{"type":"integer"},"protocol":{"type":"string"}}}}`,
			`self.all(l1, self.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol))`,
			`[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"},{"port":80,"protocol":"TCP"}]`, ``,
			": Invalid value: must not contain an item twice\n" +
				`- [0]: Duplicate value: {"port":80,"protocol":"TCP"}` + "\n" +
				`- [2]: Duplicate value: {"port":80,"protocol":"TCP"}`},
		{`{"type":"object","properties":{"namespace":{"type":"string"},"a-b":{"type":"string"}}}`, `self.__namespace__ != '' && self.a__dash__b == 'x'`,
			`{"namespace":"","a-b":"y"}`, ``, "namespace: Invalid value: \"\": must not be empty\na-b: Invalid value: \"y\": must be 'x'"},
		{`{"type":"object","properties":{"min":{"type":"integer"},"max":{"type":"integer"}}}`, `self.min <= self.max`, `{"min":5,"max":3}`, ``,
			"min: Invalid value: 5: must be less than or equal to `max`"},
		{`{"type":"object","properties":{"size":{"type":"integer"}}}`,
			`!oldSelf.hasValue() || self.size >= oldSelf.value().size`,
			`{"size":1}`, `{"size":2}`, `size: Invalid value: 1: must be greater than or equal to its previous value`},
		{`{"type":"array","items":{"type":"string"}}`, `!('*' in self && self.size() > 1)`, `["*","a"]`, ``,
			`: Too many: 2: must have at most 1 item when the value contains '*'`},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"array","items":{"type":"integer"}}}}}}}`,
			`self.a.all(x, x.b.all(y, y > 0 && y < 10))`, `{"a":[{"b":[1,2]},{"b":[3,11,-1]}]}`, ``,
			"a: Invalid value: must contain only items in which `b` contains only items that are greater than 0 and are less than 10\n" +
				"- a[1].b[1]: Invalid value: 11: must be less than 10\n" +
				"- a[1].b[2]: Invalid value: -1: must be greater than 0"},
	} {
		rules, x := compileRule(t, c.schema, c.rule, strings.Contains(c.rule, "hasValue"))
		got := explain(t, rules.Rules[0].Program, x, func(v *cel.Vars) {
			v.Set(value.Self, celtest.Parse(t, c.value), rules.Type)
			if c.old != "" {
				v.Set(value.OldSelf, celtest.Parse(t, c.old), rules.Type)
			}
		}, nil)
		if got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.rule, got, c.want)
		}
	}
}

// TestExplainShowsNothingElse: ERR-7: values of parameters do not get into messages by way of an expression that mixes
// them with the object's.
func TestExplainShowsNothingElse(t *testing.T) {
	for _, expression := range []string{
		`(has(object.spec.none) ? object.spec.none : params.map).all(k, k.startsWith('x'))`,
		`(has(object.spec.none) ? object.spec.none : params.map).all(k, v, v.startsWith('x'))`,
		`(has(object.spec.none) ? object.spec.none : params.list).all(i, i.name.startsWith('x'))`,
		`(object.spec.list + params.list).all(i, i.name.startsWith('o'))`,
		`(object.spec.list + params.list).map(i, i.name).all(n, n.startsWith('o'))`,
		`object.spec.list.all(o, params.list.all(p, p.name != 'SECRET-item'))`,
		`params.list.all(p, object.spec.list.all(o, o.name + 'x' == p.name))`,
		`params.map.all(k, params.map[k] == object.spec.text)`,
		`variables.secret == object.spec.text && object.spec.text == variables.secret`,
		`variables.mixed.name == 'x'`,
		`variables.mixed.?none.orValue(variables.mixed.name) == 'x'`,
		`(object.spec.list + [variables.mixed]).all(i, i.name.startsWith('o'))`,
		`object.spec.text.startsWith(params.list[0].name)`,
		`oldObject.spec.list.all(i, i.name == 'x')`,
		`object.spec.text == oldObject.spec.text`,
	} {
		compiler := NewCompiler(cel.NewAdmissionCompiler(true))
		for name, variable := range map[string]string{"secret": `params.list[0].name`,
			"mixed": `has(object.spec.none) ? object.spec.none : params.list[0]`} {
			if err := compiler.Variable(name, variable); err != nil {
				t.Fatal(err)
			}
		}
		p, x, err := compiler.Condition(expression)
		if err != nil {
			t.Fatal(err)
		}
		got := explain(t, p, x, func(v *cel.Vars) {
			v.Set(value.Object, celtest.Parse(t, `{"spec":{"text":"own","list":[{"name":"own"}]}}`), nil)
			v.Set(value.OldObject, celtest.Parse(t, `{"spec":{"text":"SECRET-old","list":[{"name":"SECRET-old"}]}}`),
				nil)
			v.Set(value.Params,
				celtest.Parse(t, `{"map":{"SECRET-key":"SECRET-value"},"list":[{"name":"SECRET-item"}]}`), nil)
		}, compiler.Variables())
		shown := strings.ReplaceAll(got, "'SECRET-item'", "")  // the author wrote it
		shown = strings.ReplaceAll(shown, `"SECRET-item"`, "") // in CEL
		if strings.HasPrefix(got, "evaluates") || strings.Contains(shown, "SECRET") {
			t.Errorf("%s: %s", expression, got)
		}
	}
}

// TestExplainIsBounded: an explanation names a few items, ends with the budget and with the request, and leaves the
// budget as it has to.
func TestExplainIsBounded(t *testing.T) {
	items := strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, 1000), ",")
	object := `{"spec":{"list":[` + items + `]}}`
	p, x := explainedCondition(t, `object.spec.list.all(i, i.name == 'b')`)
	f := cel.NewFrame(context.Background())
	defer f.Release()
	v := f.Vars()
	v.Set(value.Object, celtest.Parse(t, object), nil)
	found := x.Explain(f, v)
	if len(found) != 1 || len(found[0].Items) != MaxItems || found[0].More != 1000-MaxItems {
		t.Errorf("%d violations, the first with %d items and %d more", len(found), len(found[0].Items), found[0].More)
	}
	if used := cel.PolicyBudget - f.Budget(); used < 1000 || used > 20_000 {
		t.Errorf("used %d units", used)
	}

	whole := "spec.list: failed: object.spec.list.all(i, i.name == 'b')"
	f.SetBudget(500)
	if got := written(x.Explain(f, v)); got != whole {
		t.Errorf("without a budget: %s", got)
	}
	if f.Budget() != 0 {
		t.Errorf("%d units are left of a budget that was used up", f.Budget())
	}
	var failed *cel.Error
	if _, err := p.EvalBool(f, v); !errors.As(err, &failed) || failed.Cause != value.OverBudget {
		t.Errorf("then: %v", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancelled := cel.NewFrame(ctx)
	defer cancelled.Release()
	cancelled.Vars().Set(value.Object, celtest.Parse(t, object), nil)
	cancel()
	if got := written(x.Explain(cancelled, cancelled.Vars())); got != whole {
		t.Errorf("after the request: %s", got)
	}
}

// TestExplainLongLists checks that explaining a long list whose items all fail costs no more than going through it a
// few times. To count out the place of each item costs thousands of times as much.
func TestExplainLongLists(t *testing.T) {
	const n = 50_000
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"k%d":[0]`, i))
	}
	object := celtest.Parse(t, `{"l":[`+strings.Repeat(`{"x":0},`, n)+`{}],"s":[`+strings.Repeat(`"a",`, n)+
		`"a"],"m":{`+strings.Join(members, ",")+`}}`)
	for _, source := range []string{
		"object.l.all(i, i.x > 0)", "(object.l + object.l).all(i, i.x > 0)", "object.l.map(i, i.x).all(x, x > 0)",
		"object.s.all(s, s == 'b')",
		"object.l.all(n, i, i.x > 0)", "object.m.all(k, object.m[k][0] > 0)", "object.m.all(k, v, v.all(x, x > 0))",
		"[object.l].all(l, l.all(i, i.x > 0))",
	} {
		_, x := explainedCondition(t, source)
		f := cel.NewFrame(context.Background())
		v := f.Vars()
		v.Set(value.Object, object, nil)
		before := f.Spent()
		found := x.Explain(f, v)
		if spent := f.Spent() - before; spent > 15*n {
			t.Errorf("%s: %d units of cost for %d items", source, spent, n)
		}
		if len(found) != 1 || len(found[0].Items) > MaxItems {
			t.Errorf("%s: %d violations, the first with %d items", source, len(found), len(found[0].Items))
		}
		f.Release()
	}
}
