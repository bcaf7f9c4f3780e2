package proxy

import "github.com/admission-gateway/gateway/proxy/explaining"

// read is the way of a GET, a LIST and a WATCH: the answer passes as it comes, but for what the storage
// completes.
func read(r *request) error {
	at(r.telemetry.explanation, explaining.Read, nil)
	if err := r.scope.storage.Read(r.Request); err != nil {
		return err
	}
	return completeAnswer(r, &r.Info)
}
