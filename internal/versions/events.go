package versions

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
)

// The two groups that serve events.
var (
	coreEvents   = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	modernEvents = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// eventFields are the members of events that the two groups name differently; all others are the same.
var eventFields = [...]struct{ core, modern string }{
	{"involvedObject", "regarding"},
	{"message", "note"},
	{"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"},
	{"count", "deprecatedCount"},
	{"reportingComponent", "reportingController"},
}

// convertEvent turns an event of one group into one of the other.
func convertEvent(d *document.Document, toModern bool) {
	root := d.Root()
	for _, f := range eventFields {
		old, renamed := f.modern, f.core
		if toModern {
			old, renamed = f.core, f.modern
		}
		if n, found := root.Get(old); found {
			raw := n.AppendRaw(nil)
			d.Remove(n)
			d.Set(root, renamed, raw)
		}
	}
}
