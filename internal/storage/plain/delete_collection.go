package plain

import (
	"errors"
	"io"
	"iter"
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

// DeleteCollection implements storage.Deleter (RW-4).
func (s objectDeletions) DeleteCollection(w *storage.Write) (storage.Collection, error) {
	if !keeps(s.a.Resource, resource.Selectors) {
		return nil, nil
	}
	if err := w.ReadDeleteOptions(s.a.Limits); err != nil {
		return nil, err
	}
	l, err := readListOptions(s.a.Resource, &w.Info)
	if err != nil {
		return nil, err
	}
	if err := s.listMatching(w, l); err != nil {
		return nil, err
	}
	return &selected{
		of: s, write: w, list: l, left: l.names, warnings: len(w.Exchanges.Warnings),
		items: l.appendHead(nil), limit: int(2 * s.a.Limits.Body),
	}, nil
}

// selected are the objects of a collection that a request deletes, by their names. It implements storage.Collection.
type selected struct {
	of       objectDeletions
	write    *storage.Write // of the collection
	list     *listPass
	left     []string // the names of the objects that come next
	warnings int      // of the request before the object at hand

	name     string // of the object at hand
	one      storage.Write
	attempts int

	items     []byte // the answer, as far as it is made
	limit     int    // of its length
	count     int    // of the items
	isTooLong bool   // the answer would be
}

// Listed implements storage.Collection. Each object is judged under its lock.
func (c *selected) Listed() iter.Seq2[*storage.Write, error] { return nil }

// Next implements storage.Collection.
func (c *selected) Next() bool {
	c.Release()
	if len(c.left) == 0 {
		return false
	}
	c.name, c.left = c.left[0], c.left[1:]
	c.attempts, c.warnings = 0, len(c.write.Exchanges.Warnings)
	return true
}

// Read implements storage.Collection. It takes the lock of the object, and forgets the attempt before.
func (c *selected) Read() (*storage.Write, error) {
	one, s, e := &c.one, c.of, c.write.Exchanges
	one.Release()
	one.BeginPart(c.write)
	one.Info.Verb, one.Info.Name = resource.VerbDelete, c.name
	path, err := newTarget(s.a.Resource, one)
	if err != nil {
		return nil, err
	}
	one.Info.Path = string(path)
	if err := s.a.locker.lock(e, path, storage.ForItself); err != nil {
		return nil, err
	}
	if c.write.Object != nil {
		one.Object, one.ContentType = c.write.Object.Clone(), c.write.ContentType
	}
	e.Response.Discard()
	e.Memory.Reopen()
	e.Warnings = e.Warnings[:c.warnings]
	switch err := s.stored.Get(one); {
	case isNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !c.list.selects(one.Existing.Root()):
		return nil, nil // what no longer matches is not meant
	}
	return one, checkPreconditions(one)
}

// Delete implements storage.Collection.
func (c *selected) Delete() error {
	c.attempts++
	switch err := c.of.Delete(&c.one); {
	case err == storage.ErrConflict && c.attempts == maxAttempts:
		return c.one.Conflict()
	case err == storage.ErrNotSent || isNotFound(err):
		return nil
	case err != nil:
		return err
	}
	e := c.write.Exchanges
	if code := e.Response.Status(); !storage.IsDone(code) {
		if code < http.StatusBadRequest {
			return status.Coded(code, "the backend refused to delete '"+storage.Short(c.name)+"'")
		}
		return storage.NewBackendError(&c.one.Info, &e.Response.Response)
	}
	return c.add()
}

// add adds the object that was deleted to the answer.
func (c *selected) add() error {
	deleted := c.one.Existing.Object
	if deleted == nil {
		deleted = c.one.Object // it is still there, as one that is being deleted
	}
	if err := deleted.Err(); err != nil {
		return err
	}
	if c.isTooLong = c.isTooLong || len(c.items)+deleted.Extent() > c.limit; c.isTooLong {
		return nil
	}
	if c.count > 0 {
		c.items = append(c.items, ',')
	}
	c.count++
	c.items = deleted.AppendTo(c.items)
	return nil
}

// Answer implements storage.Collection.
func (c *selected) Answer() (err error) {
	r := &c.write.Exchanges.Response
	if c.isTooLong && c.list.left == 0 {
		// The objects were too large to be answered with; it counts that they are deleted.
		r.StartJSON(http.StatusOK, nil, status.AppendJSON(nil, status.Deleted(c.write.Info.GroupResource(), "", "")))
		return nil
	}
	if c.isTooLong {
		c.items = c.list.appendHead(c.items[:0])
	}
	c.items, err = c.list.appendFoot(c.items)
	r.StartJSON(http.StatusOK, nil, c.items)
	return err
}

// Release implements storage.Collection.
func (c *selected) Release() {
	c.one.Release()
	c.write.Exchanges.Unlock()
}

// listMatching finds the names of the objects that match.
func (s objectDeletions) listMatching(w *storage.Write, l *listPass) error {
	if l.options.Limit <= 0 || l.options.Limit > maxMatching {
		l.options.Limit = maxMatching
	}
	answer, err := w.Exchanges.ReadStream(s.a.Backend, listTarget(w.Exchanges, &w.Info))
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
	d := s.a.completer.newListDefaulter(&w.Info, w.Exchanges.Memory, l)
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

// isNotFound reports whether the object is gone.
func isNotFound(err error) bool {
	var e *status.Error
	return errors.As(err, &e) && e.ErrStatus.Code == http.StatusNotFound &&
		e.ErrStatus.Reason == metav1.StatusReasonNotFound
}
