package config

import "fmt"

// Events says whether refusals are recorded as Events of Kubernetes.
type Events string

// The ways to deal with them.
const (
	// NoEvents records none.
	NoEvents Events = "None"
	// RecordEvents records refusals and failures of policies beside the objects that they concern.
	RecordEvents Events = "Record"
)

var eventWays = []Events{NoEvents, RecordEvents}

// events checks the setting of an upstream. An ordinary API has no Events.
func (v *validator) events(path string, u *UpstreamSpec) {
	switch u.Events {
	case "", NoEvents:
	case RecordEvents:
		if u.Dialect != Kubernetes {
			v.check(path, fmt.Sprintf("must be '%s' for the upstream '%s': only an upstream of the dialect Kubernetes has Events", NoEvents, u.Name))
		}
	default:
		v.check(path, notOneOf(string(u.Events), eventWays))
	}
}
