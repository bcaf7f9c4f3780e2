package proxy

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

// collectionSteps are the way of the deletion of a collection whose objects policies have to see. kube-apiserver lets
// validating policies judge each object as it deletes it; the gateway judges all of them first, and deletes each in the
// version that was judged.
var collectionSteps = []step{
	(*exchange).parse,
	(*exchange).readServersOptions,
	(*exchange).readCollection, // the objects that are meant
	(*exchange).judgeEach,      // 12
	(*exchange).deleteEach,     // 13
	(*exchange).answer,         // 14
}

// judgesEach tells whether a policy has to see the objects of a collection that is deleted on a Kubernetes API server.
func (x *exchange) judgesEach() bool {
	return x.info.Verb == resource.VerbDeleteCollection && !x.upstream.plain && x.set.Admission().NeedsOld(&x.info, admission.Delete)
}

// readCollection lists what the request is about.
func (x *exchange) readCollection() error {
	query, _ := x.collectionQueries()
	if err := x.get([]byte(withQuery(x.info.Path, query))); err != nil {
		var failed *upstream.Error
		if errors.As(err, &failed) && failed.Kind == upstream.TooLarge {
			return status.RequestEntityTooLarge("the collection is too large for policies to judge all its objects: narrow it by selectors, or by `limit`")
		}
		return err
	}
	if x.oldAnswer.StatusCode() != fasthttp.StatusOK {
		return x.backendError(&x.oldAnswer)
	}
	d, err := document.Parse(append([]byte(nil), x.oldAnswer.Body()...), x.gateway.listLimits())
	if err != nil {
		return status.BadGateway("the objects to delete, which policies have to judge, must be a JSON list that the gateway can read")
	}
	x.collection = d
	if items, _ := d.Root().Get("items"); items.Kind() != document.Array && items.Kind() != document.Null {
		return status.BadGateway("the objects to delete, which policies have to judge, must be a JSON list that the gateway can read")
	}
	return nil
}

// listLimits are those of a list that was read whole.
func (g *Gateway) listLimits() document.Limits {
	limits := g.documentLimits
	limits.Bytes *= 2
	limits.Nodes *= 2
	return limits
}

// collectionQueries takes the query apart into what says which objects are meant and what says how they are deleted.
func (x *exchange) collectionQueries() (list, deletion string) {
	var which, how []string
	for pair := range strings.SplitSeq(x.info.Query, "&") {
		switch key, _, _ := strings.Cut(pair, "="); key {
		case "":
		case "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch":
			which = append(which, pair)
		default:
			how = append(how, pair)
		}
	}
	return strings.Join(which, "&"), strings.Join(how, "&")
}

func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

func (x *exchange) items() document.Node {
	items, _ := x.collection.Root().Get("items")
	return items.First()
}

// judgeEach runs the policies for each object. As in kube-apiserver none of them is named in the request.
func (x *exchange) judgeEach() error {
	for item := x.items(); item.Valid(); item = item.Next() {
		if err := x.judge(item); err != nil {
			return err
		}
	}
	return x.verdict()
}

// judge lets the policies say what they find about the deletion of one object.
func (x *exchange) judge(item document.Node) error {
	if item.Kind() != document.Object {
		return status.BadGateway("the objects to delete, which policies have to judge, must be JSON objects")
	}
	x.old = item.Clone()
	defer func() {
		x.old.Release()
		x.old = nil
		x.attributes.Old = nil
	}()
	if x.describe() {
		x.set.Admission().Validate(context.Background(), &x.attributes, &x.report)
	}
	return nil
}

// deleteEach deletes the objects one after the other, each only in the version that was judged. The first that cannot be
// deleted ends it; what is gone already is as good as deleted.
func (x *exchange) deleteEach() error {
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	for item := x.items(); item.Valid(); item = item.Next() {
		if err := x.deleteOne(item, answer); err != nil {
			return err
		}
	}
	r := &x.ctx.Response
	r.Header.SetContentType(jsonType)
	r.SetBody(x.collection.AppendTo(nil))
	return nil
}

// deleteOne deletes an object. One that another writer changed is judged again as it is now.
func (x *exchange) deleteOne(item document.Node, answer *fasthttp.Response) error {
	metadata, _ := item.Get("metadata")
	name, _ := metadata.Get("name")
	version, _ := metadata.Get("resourceVersion")
	for attempt := 1; ; attempt++ {
		if version.Kind() != document.String || version.Str() == "" || name.Str() == "" {
			return status.BadGateway("an object to delete has no name or no resourceVersion, so that its deletion cannot be pinned to the version that was judged")
		}
		path := x.info.Path + "/" + url.PathEscape(name.Str())
		if err := x.sendDelete(path, version.Raw(), answer); err != nil {
			return err
		}
		switch code := answer.StatusCode(); {
		case code < 300 || code == fasthttp.StatusNotFound:
			return nil
		case code != fasthttp.StatusConflict || attempt == maxAttempts:
			return x.backendError(answer)
		}
		// Another writer came between.
		if err := x.get([]byte(path)); err != nil {
			return err
		}
		switch code := x.oldAnswer.StatusCode(); {
		case code == fasthttp.StatusNotFound:
			return nil
		case code != fasthttp.StatusOK:
			return x.backendError(&x.oldAnswer)
		}
		d, err := document.Parse(x.oldAnswer.Body(), x.gateway.documentLimits)
		if err != nil {
			return status.BadGateway("the stored object, which this write depends on, must be a JSON object that the gateway can read")
		}
		defer d.Release()
		x.report.Reset()
		if err := x.judge(d.Root()); err != nil {
			return err
		}
		if err := x.verdict(); err != nil {
			return err
		}
		metadata, _ = d.Root().Get("metadata")
		version, _ = metadata.Get("resourceVersion")
	}
}

// sendDelete sends the deletion of one version of an object, with the client's own options.
func (x *exchange) sendDelete(path string, version []byte, answer *fasthttp.Response) error {
	options, err := x.deletionOptions(version)
	if err != nil {
		return err
	}
	_, query := x.collectionQueries()
	f := x.forwarding()
	f.Target, f.Length = []byte(withQuery(path, query)), int64(len(options))
	f.Extra = append(x.extra[:0], wire.Header{Name: nameContentType, Value: valueJSON})
	f.Skip = aboutBody
	x.head = x.conn.head.AppendForward(x.head[:0], f)
	x.call = upstream.Request{Head: x.head, Body: options, Whole: x.gateway.bodyLimit, Deadline: x.deadline()}
	answer.Reset()
	return x.upstream.client.Do(&x.call, answer)
}

// deletionOptions are the client's options with the version as a precondition.
func (x *exchange) deletionOptions(version []byte) ([]byte, error) {
	text := deleteOptions
	if x.doc != nil {
		text = x.doc.AppendTo(nil)
	}
	d, err := document.Parse(text, x.gateway.documentLimits)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	root := d.Root()
	if root.Kind() != document.Object {
		return nil, status.BadRequest("the body must be a JSON object, not %s", article(root.Kind()))
	}
	at, found := root.Get("preconditions")
	if !found || at.Kind() == document.Null {
		at = d.Set(root, "preconditions", []byte("{}"))
	}
	if at.Kind() != document.Object {
		return nil, status.BadRequest("`preconditions` must be an object, not %s", article(at.Kind()))
	}
	if sent, _ := at.Get("resourceVersion"); sent.Kind() != document.String || sent.Str() == "" {
		d.Set(at, "resourceVersion", version)
	}
	return d.AppendTo(nil), nil
}
