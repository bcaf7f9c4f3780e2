package server

import "github.com/admission-gateway/gateway/internal/message"

// A bodyInterrupter ends the reading of an answer whose client has left. It implements presence.Waiter.
type bodyInterrupter struct{ body message.Stream }

// Abandon implements presence.Waiter.
func (i *bodyInterrupter) Abandon() { i.body.Interrupt() }

// interruptible has the body of the answer interrupted if the client leaves, until it is called off.
func (r *Request) interruptible(body message.Stream) (stop func()) {
	if !r.Client.Await(&bodyInterrupter{body}) {
		body.Interrupt()
		return func() {}
	}
	return r.Client.Over
}
