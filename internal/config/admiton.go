package config

import "slices"

// AdmitOn says which object validating policies see of a create or an update.
type AdmitOn string

// The objects that policies can judge.
const (
	// AdmitOnRequest admits the object that the client sent, as defaults and mutating policies of the gateway left it.
	AdmitOnRequest AdmitOn = "Request"
	// AdmitOnDryRunResult admits the object that a Kubernetes backend would store for that, with
	// the defaults of its own kinds and the changes of its own admission: it is asked by a dry run
	// first. Patches are judged so in any case.
	AdmitOnDryRunResult AdmitOn = "DryRunResult"
)

// dryRuns checks that there is a backend which has dry runs. It takes the upstreams that the gateway will have.
func (v *validator) dryRuns(c *Configuration) {
	if c.AdmitOn != AdmitOnDryRunResult || len(c.Upstreams) == 0 {
		return
	}
	if !slices.ContainsFunc(c.Upstreams, func(u UpstreamSpec) bool { return u.Dialect == Kubernetes }) {
		v.check("admitOn", "must not be 'DryRunResult' unless an upstream has the dialect 'Kubernetes': no other backend has dry runs")
	}
}

var admitOns = []AdmitOn{AdmitOnRequest, AdmitOnDryRunResult}
