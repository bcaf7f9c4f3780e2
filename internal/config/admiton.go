package config

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

var admitOns = []AdmitOn{AdmitOnRequest, AdmitOnDryRunResult}
