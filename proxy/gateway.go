// Package proxy is the data plane: it takes requests off the wire, leads each through the steps of its way and answers it.
package proxy

import (
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// serve is the whole way of one request, from its head to its answer. A step that returns an error ends
// the way: respond.go turns the error into a Status, and nothing that was not admitted has reached the backend.
func (x *exchange) serve() error {
	steps := [...]step{
		(*exchange).checkWire, // 1 the head was read strictly, or is refused here
		(*exchange).resolve,   // 2 which resource, and what is asked of it
		(*exchange).identify,  // 3 who asks
		(*exchange).limit,     // 4 how often they may
		(*exchange).negotiate, // whether they take the answers that there are
	}
	if err := x.run(steps[:]); err != nil {
		return err
	}
	switch {
	case x.info.Verb == resource.VerbOptions:
		return x.answerOptions()
	case x.connects():
		return x.run(connectSteps) // into a pod, to a port or another server
	case x.isRead():
		return x.read()
	}
	return x.write()
}

// read forwards a request that changes nothing.
func (x *exchange) read() error {
	if x.emulatesScale() {
		return x.getScale()
	}
	steps := [...]step{
		(*exchange).readListOptions,
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
	if err := x.lock(); err != nil {
		return err
	}
	defer x.unlock()
	for attempt := 1; ; attempt++ {
		err := x.run(x.writeSteps())
		switch {
		case err == errAnswered:
			return x.answer()
		case err == errTaken && attempt == maxNames:
			return status.GenerateNameConflict(x.info.GroupResource(), x.info.Name, 1)
		case err == errRaced && (attempt == maxAttempts || x.clientPinned()):
			return x.conflict()
		case err != errTaken && err != errRaced:
			return x.orEarlier(err)
		}
		x.resetAttempt()
	}
}

// maxAttempts bounds how often one write is admitted when other writers keep coming between.
const maxAttempts = 5

// writeSteps are the steps of a write, by what it writes.
func (x *exchange) writeSteps() []step {
	switch {
	case x.info.Verb == resource.VerbDelete && x.emulatesDeletion():
		return removalSteps
	case x.emulatesDeletion() && x.emulatesLists():
		return matchingSteps
	case x.judgesEach():
		return collectionSteps
	case x.info.Verb == resource.VerbDelete || x.info.Verb == resource.VerbDeleteCollection:
		return deleteSteps
	case !x.judged(), x.passesPatch():
		return opaqueSteps
	case x.emulatesScale():
		return scaleSteps
	case x.info.Verb == resource.VerbCreate:
		return createSteps
	case x.info.Verb == resource.VerbPatch && !x.upstream.plain:
		return askedPatchSteps
	case x.info.Verb == resource.VerbPatch:
		return patchSteps
	default:
		return updateSteps
	}
}

type step func(*exchange) error

// createSteps are the way of an object that is created.
var createSteps = []step{
	(*exchange).checkOptions,   // what Kubernetes allows
	(*exchange).parse,          // 5 one strict reading
	(*exchange).complete,       // 6 what the URL says and the body leaves out
	(*exchange).checkFields,    // 9 unknown fields, before any of them could be defaulted or judged
	(*exchange).protectStatus,  // 7 a client's status never counts
	(*exchange).disownMetadata, // 7 nor does a uid
	(*exchange).setDefaults,    // 8
	(*exchange).mutate,         // 10
	(*exchange).ownMetadata,    // 10 uid, creationTimestamp, generation, and a name where the object leaves it to us
	(*exchange).checkSchema,    // 11
	(*exchange).warnOfMetadata, // 11
	(*exchange).askResult,      // 11 what the server would store, where policies judge that
	(*exchange).validate,       // 12
	(*exchange).checkCreate,    // 12 what exists is not created
	(*exchange).forward,        // 13
	(*exchange).completeWrite,  // 14
	(*exchange).answer,         // 14
}

// updateSteps are the way of an object that replaces the stored one.
var updateSteps = []step{
	(*exchange).checkOptions,
	(*exchange).parse,          // 5
	(*exchange).complete,       // 6
	(*exchange).checkFields,    // 9
	(*exchange).fetchOld,       // the stored object, only where something needs it
	(*exchange).checkVersion,   // which may have to be a certain version
	(*exchange).protectStatus,  // 7 a status that is kept apart stays as it is, or is all that changes
	(*exchange).carryOver,      // 7 so does what is immutable
	(*exchange).disownMetadata, // 7 where a PUT creates
	(*exchange).setDefaults,    // 8
	(*exchange).mutate,         // 10
	(*exchange).ownMetadata,    // 10
	(*exchange).checkSchema,    // 11
	(*exchange).warnOfMetadata, // 11
	(*exchange).askResult,      // 11 what the server would store, where policies judge that
	(*exchange).validate,       // 12
	(*exchange).finishDeletion, // 13
	(*exchange).forward,        // 13
	(*exchange).completeWrite,  // 14
	(*exchange).answer,         // 14
}

// patchSteps are the way of a patch: of the object that results from it.
var patchSteps = []step{
	(*exchange).checkOptions,
	(*exchange).parse,       // 5
	(*exchange).checkPatch,  // a PATCH whose result cannot be known ends here
	(*exchange).fetchOld,    // what is patched
	(*exchange).applyPatch,  // PATCH becomes the object that results from it
	(*exchange).complete,    // 6
	(*exchange).checkFields, // 9
	(*exchange).checkVersion,
	(*exchange).protectStatus, // 7
	(*exchange).carryOver,     // 7
	(*exchange).setDefaults,   // 8
	(*exchange).mutate,        // 10
	(*exchange).ownMetadata,   // 10
	(*exchange).checkSchema,   // 11
	(*exchange).warnOfMetadata,
	(*exchange).validate,       // 12
	(*exchange).finishDeletion, // 13
	(*exchange).forward,        // 13
	(*exchange).completeWrite,  // 14
	(*exchange).answer,         // 14
}

// askedPatchSteps are the way of a patch before a Kubernetes backend, which alone can tell what results from it.
var askedPatchSteps = []step{
	(*exchange).readPatch,    // 5
	(*exchange).askServer,    // PATCH becomes the object that results from it, by a dry run
	(*exchange).fetchPatched, // what is patched, only where something needs it
	(*exchange).setDefaults,  // 8
	(*exchange).mutate,       // 10
	(*exchange).checkSchema,  // 11
	(*exchange).validate,     // 12
	(*exchange).forwardPatch, // 13
	(*exchange).answer,       // 14
}

// scaleSteps are the way of a Scale, which asks for another number of replicas: of the object that results from it.
var scaleSteps = []step{
	(*exchange).checkOptions,
	(*exchange).parse,      // 5
	(*exchange).fetchOld,   // what is scaled
	(*exchange).readScale,  // 6 the Scale that was sent, or that results from a patch
	(*exchange).admitScale, // 10, 12 by the policies about the subresource
	(*exchange).applyScale, // the Scale becomes the object that results from it
	(*exchange).checkVersion,
	(*exchange).mutate,      // 10 by the policies about the object itself
	(*exchange).ownMetadata, // 10
	(*exchange).checkSchema, // 11
	(*exchange).warnOfMetadata,
	(*exchange).validate,       // 12
	(*exchange).finishDeletion, // 13
	(*exchange).forward,        // 13
	(*exchange).completeWrite,  // 14
	(*exchange).answer,         // 14
}

// deleteSteps are the way of a deletion, whose body is at most DeleteOptions.
var deleteSteps = []step{
	(*exchange).parse,
	(*exchange).readServersOptions,
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
