package config

import "testing"

// Policies judge the request unless the file says that they judge the server's result of it.
func TestAdmitOn(t *testing.T) {
	const head = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams: [{name: a, endpoints: ['http://a']}]\n"
	for _, c := range []struct {
		line, problem string
		want          AdmitOn
	}{
		{"", "", AdmitOnRequest},
		{"admitOn: Request\n", "", AdmitOnRequest},
		{"admitOn: DryRunResult\n", "", AdmitOnDryRunResult},
		{"admitOn: dryrunresult\n", "gateway.yaml:4: admitOn: must be 'Request' or 'DryRunResult', not 'dryrunresult'", ""},
	} {
		got, problem, _ := load(t, head+c.line, Flags{})
		if problem != c.problem || problem == "" && got.AdmitOn != c.want {
			t.Errorf("%q: got %v, %s", c.line, got, problem)
		}
	}
}
