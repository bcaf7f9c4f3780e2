package proxy

import "github.com/admission-gateway/gateway/internal/storage"

// delete is the way of a deletion, whose body is at most DeleteOptions, or what the API's document says.
func (h *handler) delete(w *storage.Write) error {
	if err := h.decodeDeletion(w); err != nil {
		return err
	}
	return h.deleteWhole(w)
}

// deleteWhole deletes one object, or a collection that the backend deletes itself.
func (h *handler) deleteWhole(w *storage.Write) error {
	s := h.scope.storage
	if err := s.PrepareForDelete(w); err != nil {
		return err
	}
	err := h.admission.Validate(w)
	if w.Failed != nil {
		return w.Failed
	}
	if err != nil {
		return err
	}
	return s.Delete(w)
}

// deleteCollection is the way of the deletion of a collection.
func (h *handler) deleteCollection(w *storage.Write) error {
	if err := h.decodeDeletion(w); err != nil {
		return err
	}
	objects, err := h.scope.storage.DeleteCollection(w)
	switch {
	case err != nil:
		return err
	case objects == nil:
		return h.deleteWhole(w)
	}
	defer objects.Release()
	listed, judge := objects.Listed(), h.admission.Validate
	if listed != nil {
		for one, err := range listed {
			if err != nil {
				return err
			}
			h.admission.Collect(one)
		}
		if err := h.admission.Decide(); err != nil {
			return err
		}
		judge = h.judgeAgain
	}
	for objects.Next() {
		if err := h.deleteNext(objects, judge, listed != nil); err != nil {
			return err
		}
	}
	return objects.Answer()
}

// deleteNext deletes the next object of a collection. One that another writer has changed is judged again.
func (h *handler) deleteNext(objects storage.Collection, judge func(*storage.Write) error, isJudged bool) error {
	for {
		if !isJudged {
			h.admission.Forget()
			one, err := objects.Read()
			if one == nil || err != nil {
				return err
			}
			if err := judge(one); err != nil {
				return err
			}
		}
		if err := objects.Delete(); err != storage.ErrConflict {
			return err
		}
		isJudged = false
	}
}

// judgeAgain runs the policies about one object of a collection that was judged as a whole.
func (h *handler) judgeAgain(one *storage.Write) error {
	h.admission.Collect(one)
	return h.admission.Decide()
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
