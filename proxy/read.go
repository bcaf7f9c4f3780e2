package proxy

import "github.com/admission-gateway/gateway/proxy/explaining"

// read is the way of a GET, a LIST and a WATCH: the answer passes as it comes, but for what the storage
// completes.
func (h *handler) read() error {
	at(h.trail.story, explaining.Read, nil)
	if err := h.scope.storage.Read(h.request); err != nil {
		return err
	}
	return h.completeAnswer(&h.request.Info)
}
