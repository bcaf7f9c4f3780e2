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
		`object.metadata.?labels['team'].orValue('') != ''`:                           "metadata.labels.team",
		`size(object.metadata.name) < 20`:                                             "metadata.name",
		`object.metadata.name.matches('^[a-z]+$')`:                                    "metadata.name",
		`object.spec.a == 1 || object.metadata.name == 'x'`:                           "",
		`request.operation == 'DELETE' || object.spec.replicas < 3`:                   "spec.replicas",
		`request.namespace == 'team-a'`:                                               "",
		`[1, 2].exists(object, object == 1)`:                                          "",
		`params.max > object.spec.replicas`:                                           "spec.replicas",
		`object.spec[request.name] == 1`:                                              "spec",
		`object == oldObject`:                                                         "",
	} {
		if got := condition(t, expression).Field(); got != want {
			t.Errorf("%s is about %q, want %q", expression, got, want)
		}
	}
}
