package proxy

import (
	"errors"
	"io"
	"net/http"

	"github.com/valyala/fasthttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

// matchingSteps are the way of the deletion of a collection of a plain backend: of each object that matches (RW-4).
var matchingSteps = []step{
	(*exchange).parse,
	(*exchange).readDeleteOptions,
	(*exchange).readListOptions,
	(*exchange).listMatching,
	(*exchange).removeMatching,
	(*exchange).answer,
}

// oneOfMatching are the way of one of them. Its policies judge what is stored, and the deletion is pinned to that.
var oneOfMatching = []step{
	(*exchange).parse,
	(*exchange).readDeleteOptions,
	(*exchange).fetchOld,
	(*exchange).checkMatch, // what no longer matches is not meant
	(*exchange).checkPreconditions,
	(*exchange).validate,
	(*exchange).removeOld,
}

// maxMatching bounds how many objects one request deletes; where there are more, the answer says how to go on.
const maxMatching = 10_000

// errUnmatched tells that an object no longer matches.
var errUnmatched = errors.New("the object does not match the selectors any more")

// listMatching finds the names of the objects that match.
func (x *exchange) listMatching() error {
	l := x.listing
	if l.options.Limit <= 0 || l.options.Limit > maxMatching {
		l.options.Limit = maxMatching
	}
	f := x.forwarding()
	f.Method, f.Skip, f.Target = methodGet, aboutBody, x.listTarget()
	f.Extra = append(x.extra[:0], wire.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	x.head = x.conn.head.AppendForward(x.head[:0], f)
	x.call = upstream.Request{Head: x.head, Idempotent: true, Deadline: x.deadline()}
	x.readsOld = true
	r := &x.oldAnswer
	r.Reset()
	if err := x.upstream.client.Do(&x.call, r); err != nil {
		return err
	}
	defer func() { _ = r.CloseBodyStream() }() // what is not read is not needed
	if r.StatusCode() != fasthttp.StatusOK {
		return x.backendError(r)
	}
	l.setVersion(r.Header.Peek(fasthttp.HeaderETag))
	if err := l.checkVersion(); err != nil {
		return err
	}
	x.info.Options.Watch, l.gathers = false, true
	e := newFilling(x)
	defer e.release()
	if err := x.gather(e, r); err != nil {
		return e.failed(err)
	}
	return nil
}

// gather leads the list through, of which only the names stay.
func (x *exchange) gather(e *filling, r *fasthttp.Response) error {
	var out []byte
	feed := func(part []byte) error {
		for len(part) > 0 {
			var used int
			var err error
			if out, used, err = e.stream.Append(out[:0], part, copyBuffer); err != nil {
				return err
			}
			part = part[used:]
		}
		return nil
	}
	if !r.IsBodyStream() {
		if err := feed(r.Body()); err != nil {
			return err
		}
	} else {
		buffer := x.conn.server.copyBuffer()
		defer x.conn.server.copies.Put(buffer)
		for {
			n, err := r.BodyStream().Read(buffer[:])
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
	if _, err := e.stream.Close(nil); err != nil {
		return err
	}
	if !e.stream.Listed() {
		return status.BadGateway("the backend's answer must be a list, or an object with the list `items`")
	}
	return nil
}

// removeMatching deletes the objects one after the other, and answers with what there was of them. As in Kubernetes the first
// that cannot be deleted ends it, and what is gone already is as good as deleted.
func (x *exchange) removeMatching() error {
	l, info := x.listing, x.info
	x.listing, x.matching = nil, l
	defer func() {
		dry := x.info.Options.DryRun
		x.info, x.listing = info, l
		x.info.Options.DryRun = dry
	}()
	most := int(2 * x.gateway.bodyLimit)
	items, tooMany := l.appendHead(nil), false
	first := true
	for _, name := range l.names {
		x.info.Verb, x.info.Name, x.info.Path = resource.VerbDelete, name, info.Path
		path, err := x.createdPath()
		if err != nil {
			return err
		}
		x.info.Path = string(path)
		if err := x.removeOne(); err != nil {
			if err == errUnmatched || isNotFound(err) {
				continue
			}
			return err
		}
		if tooMany = tooMany || len(items)+x.old.Extent() > most; tooMany {
			continue
		}
		if !first {
			items = append(items, ',')
		}
		first = false
		items = x.old.AppendTo(items)
	}
	x.dropAnswer()
	r := &x.ctx.Response
	r.SetStatusCode(fasthttp.StatusOK)
	r.Header.SetContentType(jsonType)
	if tooMany && l.left == 0 {
		// The objects were too large to be answered with; that they are deleted is what counts.
		r.SetBody(status.AppendJSON(nil, status.Deleted(info.GroupResource(), "", "")))
		return nil
	}
	if tooMany {
		items = l.appendHead(items[:0])
	}
	items, err := l.appendFoot(items)
	r.SetBodyRaw(items)
	return err
}

// removeOne deletes one object in the version that was judged; one that another writer changed is judged again.
func (x *exchange) removeOne() error {
	if err := x.lock(); err != nil {
		return err
	}
	defer x.unlock()
	for attempt := 1; ; attempt++ {
		x.dropAnswer()
		x.resetAttempt()
		x.settled = false
		err := x.run(oneOfMatching)
		switch {
		case err == errRaced && attempt < maxAttempts:
			continue
		case err == errRaced:
			return x.conflict()
		case err != nil:
			return err
		}
		x.lasting = len(x.warnings)
		if code := x.code(); !isDone(code) {
			if x.verbatim.Status != 0 {
				return status.Coded(code, "the backend refused to delete '"+short(x.info.Name)+"'")
			}
			return x.backendError(&x.ctx.Response)
		}
		return nil
	}
}

// checkMatch ends the way of an object that no longer matches.
func (x *exchange) checkMatch() error {
	if !x.matching.selects(x.old.Root()) {
		return errUnmatched
	}
	return nil
}

func isNotFound(err error) bool {
	var e *status.Error
	return errors.As(err, &e) && e.ErrStatus.Code == http.StatusNotFound && e.ErrStatus.Reason == metav1.StatusReasonNotFound
}
