// Package proxy is the data plane: it serves each request that internal/server reads by the stages of its
// scope, and answers it. serve, below, is the way of every request; stages.go has the stages in their order, and the
// way of a verb is in the file of its name. What the backend is like is behind storage.Storage.
package proxy

import (
	"errors"

	"github.com/admission-gateway/gateway/internal/message"
)

// runStages is the way of one request, from its head to its answer. A step that returns an error ends it:
// respond.go turns the error into a Status, and nothing that was not admitted has reached the backend.
func runStages(r *request) error {
	if r.incoming.Refusal != nil {
		return r.incoming.Refusal // the head cannot be read in one way only
	}
	if err := enter(r); err != nil { // by which listener it comes
		return err
	}
	if err := resolve(r); err != nil { // which operation it asks for
		return err
	}
	stages := r.scope.stages
	if r.incoming.Head.Has(message.FieldXAdmissionExplain) { // what would become of it
		stages = r.scope.explained
	}
	for i := range stages {
		if err := stages[i].run(r); err != nil {
			if err == errServed {
				return nil
			}
			return err
		}
	}
	return nil
}

// errServed is the error of a stage that has served the request, so that no further stage runs.
var errServed = errors.New("the request is served")
