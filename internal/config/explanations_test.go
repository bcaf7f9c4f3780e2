package config

import "testing"

func TestExplanations(t *testing.T) {
	const (
		rest     = "upstreams: [{name: a, endpoints: [http://a]}]\nroutes: [{upstream: a}]\n"
		identity = "identity: {authenticators: [{requestHeader: {addresses: [127.0.0.1]}}]}\n"
	)
	for _, test := range []struct{ name, text, want string }{
		{"digests", "telemetry: {explanations: {groups: [team-a], users: [system:serviceaccount:ci:deploy]}}\n" + identity, ""},
		{"values", "telemetry: {explanations: {groups: [team-a], values: Shown}}\n" + identity, ""},
		{"nobody is known", "telemetry: {explanations: {groups: [team-a]}}\n",
			"gateway.yaml:3: telemetry.explanations: must not be set without `identity`, which says who asks"},
		{"nobody", "telemetry: {explanations: {}}\n" + identity, "gateway.yaml:3: telemetry.explanations: must name at least one of `users` or `groups`"},
		{"anonymous", "telemetry: {explanations: {users: [system:anonymous]}}\n" + identity,
			"gateway.yaml:3: telemetry.explanations.users[0]: must not be 'system:anonymous': only who is known may ask"},
		{"twice", "telemetry: {explanations: {groups: [a, a]}}\n" + identity, "gateway.yaml:3: telemetry.explanations.groups[1]: must be unique; 'a' is listed twice"},
		{"empty", "telemetry: {explanations: {groups: ['']}}\n" + identity, "gateway.yaml:3: telemetry.explanations.groups[0]: Required value: must not be empty"},
		{"another word", "telemetry: {explanations: {groups: [a], values: All}}\n" + identity,
			"gateway.yaml:3: telemetry.explanations.values: must be 'Digests' or 'Shown', not 'All'"},
	} {
		c, problem, _ := load(t, head+test.text+rest, Flags{})
		if problem != test.want {
			t.Errorf("%s: %s, want %s", test.name, problem, test.want)
			continue
		}
		if problem != "" {
			continue
		}
		e := c.Telemetry.Explanations
		if want := test.name == "values"; (e.Values == ShowValues) != want {
			t.Errorf("%s: values are %q", test.name, e.Values)
		}
		if !e.Allows("a", []string{"b", "team-a"}) || e.Allows("a", []string{"b"}) || e.Allows("team-a", nil) {
			t.Errorf("%s: allows others than it names", test.name)
		}
	}
	if (*Explanations)(nil).Allows("a", []string{"system:masters"}) {
		t.Error("somebody may ask although nothing is configured")
	}
}
