package proxy

import "github.com/admission-gateway/gateway/internal/storage"

// deleteObject is the way of a deletion, whose body is at most DeleteOptions, or what the API's document says.
func deleteObject(r *request, w *storage.Write) error {
	if err := decodeDeletion(r, w); err != nil {
		return err
	}
	return deleteWhole(r, w)
}

// deleteWhole deletes one object, or a collection that the backend deletes itself.
func deleteWhole(r *request, w *storage.Write) error {
	s := r.scope.storage
	if err := s.PrepareForDelete(w); err != nil {
		return err
	}
	err := validate(r, w)
	if w.Failed != nil {
		return w.Failed
	}
	if err != nil {
		return err
	}
	return s.Delete(w)
}

// deleteCollection is the way of the deletion of a collection.
func deleteCollection(r *request, w *storage.Write) error {
	if err := decodeDeletion(r, w); err != nil {
		return err
	}
	objects, err := r.scope.storage.DeleteCollection(w)
	switch {
	case err != nil:
		return err
	case objects == nil:
		return deleteWhole(r, w)
	}
	defer objects.Release()
	listed, judge := objects.Listed(), validate
	if listed != nil {
		for one, err := range listed {
			if err != nil {
				return err
			}
			collect(r, one)
		}
		if err := decide(r); err != nil {
			return err
		}
		judge = judgeAgain
	}
	for objects.Next() {
		if err := deleteNext(r, objects, judge, listed != nil); err != nil {
			return err
		}
	}
	return objects.Answer()
}

// deleteNext deletes the next object of a collection. One that another writer has changed is judged again.
func deleteNext(r *request, objects storage.Collection, judge func(*request, *storage.Write) error, isJudged bool) error {
	for {
		if !isJudged {
			forget(r)
			one, err := objects.Read()
			if one == nil || err != nil {
				return err
			}
			if err := judge(r, one); err != nil {
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
func judgeAgain(r *request, one *storage.Write) error {
	collect(r, one)
	return decide(r)
}

// decodeDeletion reads the body of a deletion, and checks it if the API's document describes it.
func decodeDeletion(r *request, w *storage.Write) error {
	if r.body.language == inBytes {
		w.Source = r.Body
		return nil
	}
	if err := decodeBody(r, w); err != nil || w.Object == nil {
		return err
	}
	return checkBody(r, w, w.Object.Root(), r.body.declared)
}
