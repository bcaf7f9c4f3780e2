package config

import "slices"

// HalfClose says what a client has done that closes its end of a connection of HTTP/1.1, and may still read.
type HalfClose string

// What it may have done.
const (
	// AbandonHalfClosed: it has left, as to nginx and to servers of Go. Its request is over.
	AbandonHalfClosed HalfClose = "Abandon"
	// ServeHalfClosed: it waits for the answer. Only a reset says that it has left.
	ServeHalfClosed HalfClose = "Serve"
)

var halfCloses = []HalfClose{AbandonHalfClosed, ServeHalfClosed}

// ServesHalfClosed reports whether a client that has closed its end still waits.
func (l *Listener) ServesHalfClosed() bool { return l.HalfClose == ServeHalfClosed }

// AbandonedWrites says what happens to a write that was sent to the backend when its client leaves.
type AbandonedWrites string

// What may happen to it.
const (
	// CancelWrites closes the exchange, by which the backend learns that nobody waits.
	CancelWrites AbandonedWrites = "Cancel"
	// ContinueWrites lets it go on to its end.
	ContinueWrites AbandonedWrites = "Continue"
)

var abandonedWriteWays = []AbandonedWrites{CancelWrites, ContinueWrites}

// ContinuesWrites reports whether a write by a route to the upstream goes on when its client leaves: by the route's own
// word, else the upstream's.
func (u *UpstreamSpec) ContinuesWrites(r *Route) bool {
	if r.AbandonedWrites != "" {
		return r.AbandonedWrites == ContinueWrites
	}
	return u.AbandonedWrites == ContinueWrites
}

// LastsCalls reports whether a call of gRPC by a route to the upstream may last: the upstream speaks HTTP/2, or the
// route says so.
func (u *UpstreamSpec) LastsCalls(r *Route) bool { return r.GRPC || u.Protocol == HTTP2Protocol }

// abandonedWrites checks the setting of an upstream or a route.
func (v *validator) abandonedWrites(path string, value AbandonedWrites) {
	if value != "" && !slices.Contains(abandonedWriteWays, value) {
		v.check(path+".abandonedWrites", notOneOf(string(value), abandonedWriteWays))
	}
}
