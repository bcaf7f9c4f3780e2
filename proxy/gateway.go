// Package proxy is the data plane: it takes requests off the wire, leads each through the steps of its way and answers it.
package proxy

import (
	"github.com/admission-gateway/gateway/internal/resource"
)

// serve is the whole way of one request, from its head to its answer. A step that returns an error ends
// the way: respond.go turns the error into a Status, and nothing that was not admitted has reached the backend.
func (x *exchange) serve() error {
	steps := [...]step{
		(*exchange).checkWire, // 1 the head was read strictly, or is refused here
		(*exchange).resolve,   // 2 which resource, and what is asked of it
		(*exchange).identify,  // 3 who asks
		(*exchange).limit,     // 4 how often they may
	}
	if err := x.run(steps[:]); err != nil {
		return err
	}
	switch {
	case x.info.Verb == resource.VerbOptions:
		return x.answerOptions()
	case x.isRead():
		return x.read()
	}
	return x.write()
}

// read forwards a request that changes nothing.
func (x *exchange) read() error {
	steps := [...]step{
		(*exchange).forward,    // 13
		(*exchange).fillAnswer, // 14 a plain backend's objects come back defaulted
		(*exchange).answer,     // 14
	}
	return x.run(steps[:])
}

// write admits the object and forwards what was admitted. Where another writer came between the version that
// was admitted and the write, the whole admission runs again on the new version, a bounded number of times.
func (x *exchange) write() error {
	if err := x.readBody(); err != nil { // 5
		return err
	}
	for attempt := 1; ; attempt++ {
		err := x.run(x.writeSteps())
		if err != errRaced {
			return err
		}
		if attempt == maxAttempts || x.clientPinned() {
			return x.conflict()
		}
		x.resetAttempt()
	}
}

// maxAttempts bounds how often one write is admitted when other writers keep coming between.
const maxAttempts = 5

// writeSteps are the steps of a write, by what it writes.
func (x *exchange) writeSteps() []step {
	switch {
	case x.info.Verb == resource.VerbDelete || x.info.Verb == resource.VerbDeleteCollection:
		return deleteSteps
	case x.judged():
		return objectSteps
	default:
		return opaqueSteps
	}
}

type step func(*exchange) error

// objectSteps are the way of an object that is created, replaced or patched.
var objectSteps = []step{
	(*exchange).parse,         // 5 one strict reading
	(*exchange).checkPatch,    // a PATCH whose result cannot be known ends here
	(*exchange).fetchOld,      // the stored object, only where something needs it
	(*exchange).applyPatch,    // PATCH becomes the object that results from it
	(*exchange).complete,      // 6 what the URL says and the body leaves out
	(*exchange).checkFields,   // 9 unknown fields, before any of them could be defaulted or judged
	(*exchange).protectStatus, // 7 a client's status never counts
	(*exchange).setDefaults,   // 8
	(*exchange).mutate,        // 10
	(*exchange).checkSchema,   // 11
	(*exchange).validate,      // 12
	(*exchange).forward,       // 13
	(*exchange).answer,        // 14
}

// deleteSteps are the way of a deletion, whose body is at most DeleteOptions.
var deleteSteps = []step{
	(*exchange).parse,
	(*exchange).fetchOld,
	(*exchange).validate,
	(*exchange).forward,
	(*exchange).answer,
}

// opaqueSteps are the way of a body that no policy is about: it is read strictly, so that it cannot mean
// something else to the backend, and forwarded as it came.
var opaqueSteps = []step{
	(*exchange).parse,
	(*exchange).forward,
	(*exchange).answer,
}

// run takes the steps one after the other up to the first that fails.
func (x *exchange) run(steps []step) error {
	for _, s := range steps {
		if err := s(x); err != nil {
			return err
		}
	}
	return nil
}
