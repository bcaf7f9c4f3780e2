package explain

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// TestField: the field that a condition judges (VAL-2).
func TestField(t *testing.T) {
	for expression, want := range map[string]string{
		`object.spec.replicas <= 10`:                                                  "spec.replicas",
		`10 >= object.spec.replicas && object.spec.replicas > 0`:                      "spec.replicas",
		`!has(object.spec.replicas) || object.spec.replicas <= 10`:                    "spec.replicas",
		`has(object.spec.replicas)`:                                                   "spec.replicas",
		`has(object.spec) && has(object.spec.replicas) && object.spec.replicas <= 10`: "spec.replicas",
		`object.spec.min <= object.spec.max`:                                          "spec",
		`object.spec.name == oldObject.spec.name`:                                     "spec.name",
		`object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))`:  "spec.containers",
		`object.spec.containers[0].image.startsWith('registry.example.com/')`:         "spec.containers[0].image",
		`object.metadata.labels['example.com/team'] == 'a'`:                           "metadata.labels[example.com/team]",
		`object.metadata.?labels['team'].orValue('') != ''`:                           "metadata.labels[team]",
		`size(object.metadata.name) < 20`:                                             "metadata.name",
		`object.metadata.name.matches('^[a-z]+$')`:                                    "metadata.name",
		`object.spec.a == 1 || object.metadata.name == 'x'`:                           "",
		`request.operation == 'DELETE' || object.spec.replicas < 3`:                   "spec.replicas",
		`request.namespace == 'team-a'`:                                               "",
		`[1, 2].exists(object, object == 1)`:                                          "",
		`params.max > object.spec.replicas`:                                           "spec.replicas",
		`object.spec[request.name] == 1`:                                              "spec",
		`object.spec.containers.all(c, c.name != object.metadata.name)`:               "spec.containers",
		`[1, 3].exists(n, object.spec.replicas == n)`:                                 "spec.replicas",
		`variables.names.all(n, n.startsWith(object.metadata.name))`:                  "spec.containers",
		`variables.limit == 5 || object.spec.replicas < 2`:                            "spec",
		`object == oldObject`:                                                         "",
		`variables.pod.host || variables.pod.pid`:                                     "spec",
		`variables.host.all(h, h == object.spec.name)`:                                "spec",
	} {
		c := NewCompiler(cel.NewAdmissionCompiler(true))
		for _, v := range [][2]string{
			{"names", `object.spec.containers.map(c, c.name)`},
			{"limit", `object.spec.limit`},
			{"pod", `object.spec.kind == 'Pod' ? object.spec : object.spec.template.spec`},
			{"host", `[variables.pod.host]`},
		} {
			if err := c.Variable(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		_, x, err := c.Condition(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Field(); got != want {
			t.Errorf("%s is about %q, want %q", expression, got, want)
		}
	}
}

// TestFieldOfRule: the field that a rule of a schema judges.
func TestFieldOfRule(t *testing.T) {
	_, x := compileRule(t, `{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}}}}`, `self.list.all(i, i > 1)`, false)
	if got := x.Field(); got != "list" {
		t.Errorf("derived field %q", got)
	}
}

// TestVariablesOfOneNameExplained: of variables of one name the last one counts; what messages say comes from it, too.
func TestVariablesOfOneNameExplained(t *testing.T) {
	for _, c := range []struct {
		variables       [][2]string
		condition, want string
	}{
		{[][2]string{{"ok", "object.n < 5"}, {"both", "variables.ok && object.n > 1"}, {"ok", "object.m < 5"}},
			"variables.both",
			": Invalid value: `variables.both` must be true"},
		{[][2]string{{"ok", "object.n < 5"}, {"ok", "object.m < 5"}}, "variables.ok",
			"m: Invalid value: 7: must be less than 5"},
	} {
		compiler := NewCompiler(cel.NewAdmissionCompiler(true))
		for _, v := range c.variables {
			if err := compiler.Variable(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		p, x, err := compiler.Condition(c.condition)
		if err != nil {
			t.Fatal(err)
		}
		set := func(v *cel.Vars) { v.Set(value.Object, celtest.Parse(t, `{"n":3,"m":7}`), nil) }
		if got := explain(t, p, x, set, compiler.Variables()); got != c.want {
			t.Errorf("%s of %v: %s, want %s", c.condition, c.variables, got, c.want)
		}
	}
}
