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
		{"admitOn: DryRunResult\n", "gateway.yaml:4: admitOn: must not be 'DryRunResult' unless an upstream has the dialect 'Kubernetes': no other backend has dry runs", ""},
		{"routes: [{upstream: a}]\nadmitOn: DryRunResult\n", "gateway.yaml:5: admitOn: must not be 'DryRunResult' unless an upstream has the dialect 'Kubernetes': no other backend has dry runs", ""},
		{"admitOn: dryrunresult\n", "gateway.yaml:4: admitOn: must be 'Request' or 'DryRunResult', not 'dryrunresult'", ""},
	} {
		got, problem, _ := load(t, head+c.line, Flags{})
		if problem != c.problem || problem == "" && got.AdmitOn != c.want {
			t.Errorf("%q: got %v, %s", c.line, got, problem)
		}
	}
}

// TestAdmitOnDryRun: a Kubernetes upstream has dry runs, also if a flag names it.
func TestAdmitOnDryRun(t *testing.T) {
	const head = "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nadmitOn: DryRunResult\n"
	for _, c := range []struct {
		text  string
		flags Flags
	}{
		{head + "upstreams: [{name: a, endpoints: ['http://a'], dialect: Kubernetes}]\n", Flags{}},
		{head, Flags{Upstream: "http://a", Dialect: "Kubernetes"}},
	} {
		if got, problem, _ := load(t, c.text, c.flags); problem != "" || got.AdmitOn != AdmitOnDryRunResult {
			t.Errorf("%s%v: %v, %s", c.text, c.flags, got, problem)
		}
	}
}
