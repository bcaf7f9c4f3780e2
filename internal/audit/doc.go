// Package audit records who asked what, and what became of it, as Kubernetes' API server does: as
// events of audit.k8s.io/v1, by the rules of an audit Policy.
//
// A [Policy] decides about a request with the rules of k8s.io/apiserver itself. An [Event] has all
// that is known of the request, and writes itself as one line of JSON without a map or reflection. A
// [Log] takes lines and hands them to its sinks, a file or a webhook, in the background. Its memory
// is bounded. What a full queue does is the configuration's choice: [Batch] drops the event and
// counts it, [Blocking] refuses the request before anything reached the backend.
package audit
