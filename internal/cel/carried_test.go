package cel

import "testing"

// TestReadsCarried: which expressions read fields of the object that a server carries over from the stored object.
func TestReadsCarried(t *testing.T) {
	for expression, want := range map[string]bool{
		"object.spec.size > 1":                                            false,
		"object.metadata.name == 'a'":                                     false,
		"has(object.metadata.labels) && 'a' in object.metadata.labels":    false,
		"oldObject.metadata.generation == 1":                              false,
		"request.operation == 'UPDATE'":                                   false,
		"object.metadata.?labels[?'generation'].orValue('') == ''":        false,
		"object == oldObject":                                             true,
		"object.metadata == oldObject.metadata":                           true,
		"object.metadata.generation == 1":                                 true,
		"has(object.metadata.deletionTimestamp)":                          true,
		"object.metadata.?deletionTimestamp.hasValue()":                   true,
		"object['metadata']['uid'] == 'a'":                                true,
		"object.metadata['creation' + 'Timestamp'] == 'a'":                true,
		"object.metadata.exists(k, k == 'uid')":                           true,
		"object.exists(k, k == 'status')":                                 true,
		"has(object.status) && object.status.ready":                       true,
		"[object].all(o, o.metadata.uid == 'a')":                          true,
		"[object.metadata].all(m, has(m.managedFields))":                  true,
		"(has(object.spec) ? object : oldObject).metadata.generation > 1": true,
	} {
		p, err := NewAdmissionCompiler(false).MatchCondition(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if p.ReadsCarried() != want {
			t.Errorf("%s: got %v", expression, p.ReadsCarried())
		}
	}
}
