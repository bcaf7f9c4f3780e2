// Package gatekeeper holds the gateway's binary against Gatekeeper's own packages: which constraints
// match, what they say and in which order, and what mutators make of objects. It is a module of its
// own, because Gatekeeper needs other versions of Kubernetes' libraries than the gateway.
package gatekeeper
