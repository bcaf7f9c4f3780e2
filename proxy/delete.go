package proxy

import "github.com/admission-gateway/gateway/internal/storage"

// deleteObject is the way of a deletion, whose body is at most DeleteOptions, or what the API's document says.
func deleteObject(r *request, a attempt) error {
	if err := decodeDeletion(r, a); err != nil {
		return err
	}
	return deleteWhole(r, a)
}

// deleteWhole deletes one object, or a collection that the backend deletes itself.
func deleteWhole(r *request, a attempt) error {
	s := r.scope.storage
	if err := s.PrepareForDelete(a.Write); err != nil {
		return err
	}
	err := validate(r, a)
	if a.Failed != nil {
		return a.Failed
	}
	if err != nil {
		return err
	}
	return s.Delete(a.Write)
}

// deleteCollection is the way of the deletion of a collection.
func deleteCollection(r *request, a attempt) error {
	if err := decodeDeletion(r, a); err != nil {
		return err
	}
	objects, err := r.scope.storage.DeleteCollection(a.Write)
	switch {
	case err != nil:
		return err
	case objects == nil:
		return deleteWhole(r, a)
	}
	defer objects.Release()
	listed, judge := objects.Listed(), validate
	if listed != nil {
		for one, err := range listed {
			if err != nil {
				return err
			}
			collect(r, a.of(one))
		}
		if err := decide(r, a); err != nil {
			return err
		}
		judge = judgeAgain
	}
	for objects.Next() {
		if err := deleteNext(r, a, objects, judge, listed != nil); err != nil {
			return err
		}
	}
	return objects.Answer()
}

// deleteNext deletes the next object of a collection. One that another writer has changed is judged again.
func deleteNext(r *request, a attempt, objects storage.Collection, judge func(*request, attempt) error,
	isJudged bool) error {
	for {
		if !isJudged {
			a.forget()
			one, err := objects.Read()
			if one == nil || err != nil {
				return err
			}
			if err := judge(r, a.of(one)); err != nil {
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
func judgeAgain(r *request, a attempt) error {
	collect(r, a)
	return decide(r, a)
}

// decodeDeletion reads the body of a deletion, and checks it if the API's document describes it.
func decodeDeletion(r *request, a attempt) error {
	if r.body.language == inBytes {
		a.Source = r.Body
		return nil
	}
	if err := decodeBody(r, a); err != nil || a.Object == nil {
		return err
	}
	return checkBody(r, a, a.Object.Root(), r.body.declared)
}
