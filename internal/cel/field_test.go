package cel

import "testing"

// TestField: the field that a condition is about (VAL-2).
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
	} {
		c := NewAdmissionCompiler(true)
		for name, variable := range map[string]string{"names": `object.spec.containers.map(c, c.name)`, "limit": `object.spec.limit`} {
			if err := c.Variable(name, variable); err != nil {
				t.Fatal(err)
			}
		}
		p, err := c.Condition(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Field(); got != want {
			t.Errorf("%s is about %q, want %q", expression, got, want)
		}
	}
}
