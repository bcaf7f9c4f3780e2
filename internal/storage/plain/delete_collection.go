package plain

import (
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// maxMatching bounds how many objects one request deletes; if there are more, the answer says how to go on.
const maxMatching = 10_000

// maxAttempts bounds how often one object is judged when other writers keep coming between.
const maxAttempts = 5

// errUnmatched says that an object no longer matches.
var errUnmatched = errors.New("the object does not match the selectors any more")

// DeleteCollection deletes each object that matches (RW-4). As in Kubernetes the first that cannot be deleted
// ends it, and what is gone already is as good as deleted.
func (s objectDeletions) DeleteCollection(w *storage.Write, h storage.Handler) error {
	if !s.c.keeps(resource.Selectors) {
		return s.c.deleteNative(w, h, s.stored)
	}
	if err := w.ReadDeleteOptions(s.c.Limits); err != nil {
		return err
	}
	l, err := s.c.readListOptions(&w.Info)
	if err != nil {
		return err
	}
	if err := s.listMatching(w, l); err != nil {
		return err
	}
	limit := int(2 * s.c.Limits.Body)
	items, isTooMany, isFirst := l.appendHead(nil), false, true
	for _, name := range l.names {
		var one storage.Write
		err := s.deleteMatching(w, &one, h, l, name)
		if err == errUnmatched || err == storage.ErrNotSent || isNotFound(err) {
			one.Release()
			continue
		}
		if err != nil {
			one.Release()
			return err
		}
		deleted := one.Existing.Object
		if deleted == nil {
			deleted = one.Object // it is still there, as one that is being deleted
		}
		if err := deleted.Err(); err != nil {
			one.Release()
			return err
		}
		if isTooMany = isTooMany || len(items)+deleted.Extent() > limit; !isTooMany {
			if !isFirst {
				items = append(items, ',')
			}
			isFirst = false
			items = deleted.AppendTo(items)
		}
		one.Release()
	}
	r := &w.Exchanges.Response
	if isTooMany && l.left == 0 {
		// The objects were too large to be answered with; it counts that they are deleted.
		r.StartJSON(http.StatusOK, nil, status.AppendJSON(nil, status.Deleted(w.Info.GroupResource(), "", "")))
		return nil
	}
	if isTooMany {
		items = l.appendHead(items[:0])
	}
	items, err = l.appendFoot(items)
	r.StartJSON(http.StatusOK, nil, items)
	return err
}

// listMatching finds the names of the objects that match.
func (s objectDeletions) listMatching(w *storage.Write, l *listPass) error {
	if l.options.Limit <= 0 || l.options.Limit > maxMatching {
		l.options.Limit = maxMatching
	}
	answer, err := w.Exchanges.ReadStream(s.c.Backend, listTarget(w.Exchanges, &w.Info))
	if err != nil {
		return err
	}
	defer answer.Close()
	if answer.Status() != http.StatusOK {
		return storage.NewBackendError(&w.Info, answer)
	}
	l.setVersion(answer.Header("ETag"))
	if err := l.checkVersion(); err != nil {
		return err
	}
	l.names = []string{}
	d := s.c.newListDefaulter(&w.Info, w.Exchanges.Memory, l)
	defer d.Release()
	if err := gather(d, answer); err != nil {
		return d.Failed(err)
	}
	return nil
}

// gather reads the list as it streams and keeps its names alone.
func gather(d *defaulter, answer *message.Response) error {
	const limit = 64 << 10
	var out []byte
	feed := func(part []byte) error {
		for len(part) > 0 {
			var used int
			var err error
			if out, used, err = d.stream.Append(out[:0], part, limit); err != nil {
				return err
			}
			part = part[used:]
		}
		return nil
	}
	if !answer.IsStream() {
		if err := feed(answer.Body()); err != nil {
			return err
		}
	} else {
		buffer := make([]byte, limit)
		for {
			n, err := answer.Stream().Read(buffer)
			if fault := feed(buffer[:n]); fault != nil {
				return fault
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return status.BadGateway("the backend's list of the objects to delete broke off")
			}
		}
	}
	if _, err := d.stream.Close(nil); err != nil {
		return err
	}
	if !d.stream.Listed() {
		return status.BadGateway("the backend's answer must be a list, or an object with the list `items`")
	}
	return nil
}

// deleteMatching deletes one object in the version that was judged; one that another writer changed is judged
// again. What was stored is in one afterwards.
func (s objectDeletions) deleteMatching(w, one *storage.Write, h storage.Handler, l *listPass, name string) error {
	e := w.Exchanges
	defer e.Unlock()
	kept := len(e.Warnings)
	for attempt := 1; ; attempt++ {
		one.Release()
		one.BeginPart(w)
		one.Info.Verb, one.Info.Name = resource.VerbDelete, name
		path, err := s.c.newTarget(one)
		if err != nil {
			return err
		}
		one.Info.Path = string(path)
		if err := s.c.lock(e, path, storage.ForItself); err != nil {
			return err
		}
		if w.Object != nil {
			one.Object, one.ContentType = w.Object.Clone(), w.ContentType
		}
		e.Response.Discard()
		e.Memory.Reopen()
		e.Warnings = e.Warnings[:kept]
		h.Forget()
		err = s.deleteOne(one, h, l)
		switch {
		case err == storage.ErrConflict && attempt < maxAttempts:
			continue
		case err == storage.ErrConflict:
			return one.Conflict()
		case err != nil:
			return err
		}
		if code := e.Response.Status(); !storage.IsDone(code) {
			if code < http.StatusBadRequest {
				return status.Coded(code, "the backend refused to delete '"+storage.Short(name)+"'")
			}
			return storage.NewBackendError(&one.Info, &e.Response.Response)
		}
		return nil
	}
}

func (s objectDeletions) deleteOne(w *storage.Write, h storage.Handler, l *listPass) error {
	if err := s.stored.Get(w); err != nil {
		return err
	}
	if !l.selects(w.Existing.Root()) {
		return errUnmatched // what no longer matches is not meant
	}
	return s.deleteRead(w, h)
}

func isNotFound(err error) bool {
	var e *status.Error
	return errors.As(err, &e) && e.ErrStatus.Code == http.StatusNotFound && e.ErrStatus.Reason == metav1.StatusReasonNotFound
}
