package proxy

import "github.com/admission-gateway/gateway/internal/storage"

// delete is the way of a deletion, whose body is at most DeleteOptions, or what the API's document says. Only the storage knows when the stored
// object has to be read; it validates it by Validate.
func (h *handler) delete(w *storage.Write) error {
	if err := h.decodeDeletion(w); err != nil {
		return err
	}
	return h.scope.storage.Delete(w, h.admission)
}

// deleteCollection is the way of the deletion of a collection.
func (h *handler) deleteCollection(w *storage.Write) error {
	if err := h.decodeDeletion(w); err != nil {
		return err
	}
	return h.scope.storage.DeleteCollection(w, h.admission)
}

// decodeDeletion reads the body of a deletion, and checks it if the API's document describes it.
func (h *handler) decodeDeletion(w *storage.Write) error {
	if h.body.language == inBytes {
		w.Source = h.request.Body
		return nil
	}
	if err := h.body.decode(w); err != nil || w.Object == nil {
		return err
	}
	return h.admission.checkBody(w, w.Object.Root(), h.body.declared)
}
