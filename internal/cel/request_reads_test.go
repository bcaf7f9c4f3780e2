package cel

import "testing"

// Expressions read the user by every spelling that leads to it, and by none that leads elsewhere.
func TestReadsUser(t *testing.T) {
	for expression, want := range map[string]bool{
		"request.userInfo.username == 'a'":                               true,
		"has(request.userInfo.groups)":                                   true,
		"request.?userInfo.username.orValue('') == 'a'":                  true,
		"'a' in request.userInfo.groups.map(g, g)":                       true,
		"['a'].exists(r, request.userInfo.username == r)":                true,
		"dyn(request).userInfo.username == 'a'":                          true,
		"[request].exists(r, r.userInfo.username == 'a')":                true,
		"authorizer.path('/a').check('get').allowed()":                   true,
		"authorizer.requestResource.check('get').allowed()":              true,
		"request.operation == 'CREATE'":                                  false,
		"request.?namespace.orValue('') == 'a'":                          false,
		"has(request.namespace) && request.kind.kind == 'userInfo'":      false,
		"object.userInfo.username == 'a'":                                false,
		"[object].exists(request, request.userInfo.username == 'a')":     true, // by its name, to be safe
		"object.?userInfo.orValue('') == 'authorizer' || request.dryRun": false,
	} {
		p, err := NewAdmissionCompiler(false).Condition(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got := p.ReadsUser(); got != want {
			t.Errorf("%s reads the user: %t, want %t", expression, got, want)
		}
	}
}

// Conditions need no object if they read nothing but what the URL and the credentials say, by every spelling.
func TestNeedsNoObject(t *testing.T) {
	for expression, want := range map[string]bool{
		"request.userInfo.username == 'a'":                                       true,
		"!(request.resource.group == 'apps' && request.?name.orValue('') == '')": true,
		"request.operation != 'DELETE' || request.subResource == 'scale'":        true,
		"has(request.namespace) && request.namespace.startsWith('kube-')":        true,
		"authorizer.requestResource.check('get').allowed()":                      true,
		"namespaceObject == null":                                                true,
		"true":                                                                   true,
		"object.metadata.name == 'a'":                                            false,
		"request.userInfo.username == 'a' && oldObject == null":                  false,
		"request.kind.kind == 'Pod'":                                             false,
		"request.requestKind.kind == 'Pod'":                                      false,
		"request.dryRun":                                                         false,
		"has(request.options) && request.options != null":                        false,
		"request.?options.orValue(null) == null":                                 false,
		"[request].exists(r, r.operation == 'CREATE')":                           false,
		"dyn(request).operation == 'CREATE'":                                     false,
		"params.data == null":                                                    false,
	} {
		p, err := NewAdmissionCompiler(true).MatchCondition(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got := p.NeedsNoObject(); got != want {
			t.Errorf("%s needs no object: %t, want %t", expression, got, want)
		}
	}
}
