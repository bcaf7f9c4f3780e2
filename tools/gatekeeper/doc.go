// Package gatekeeper compares the gateway's binary with Gatekeeper's own packages: which
// constraints match, what they say and in which order, and how mutators change objects. It is a
// module of its own, because Gatekeeper needs other versions of Kubernetes' libraries than the
// gateway.
package gatekeeper
