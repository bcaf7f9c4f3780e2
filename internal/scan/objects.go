package scan

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

var (
	methodPost = []byte(http.MethodPost)
	methodPut  = []byte(http.MethodPut)
)

// objectShape reads an object that is judged as what the scan says.
type objectShape struct{}

// read implements shape.
func (objectShape) read(w *worker, text []byte, i *item) string {
	t := &w.trial
	text = bytes.TrimSpace(text)
	d, err := document.Parse(text, w.scan.options.New.Gateway.ObjectLimits())
	if err != nil {
		return w.unreadable(i, err)
	}
	t.object, t.body = d, text
	if d.Root().Kind() != document.Object {
		return "it is no object"
	}
	if t.target, err = w.placer.target(d.Root(), text, i.about, w.scan.options.As); err != nil {
		return err.Error()
	}
	t.method = methodPost
	if w.scan.options.As == Update {
		t.method, t.old = methodPut, text
	}
	if owned := w.ownedText(i.about, d); owned != nil {
		t.body, t.object = owned, nil
		d.Release()
	}
	return ""
}

// ownedText returns the object without what the API itself sets, as a client would create it; nil if there is nothing
// to leave out.
func (w *worker) ownedText(about *subject, d *document.Document) []byte {
	if about == nil || about.resource == nil || w.scan.options.As != Create {
		return nil
	}
	owned := w.scan.options.New.Set.Owned(about.resource, resource.VerbCreate)
	if !owned.Any() {
		return nil
	}
	var sent []document.Node
	owned.Each(d.Root(), document.Node{}, func(n, _ document.Node) { sent = append(sent, n) })
	if len(sent) == 0 {
		return nil
	}
	for _, n := range sent {
		d.Remove(n)
	}
	return d.AppendTo(nil)
}

// unreadable counts a text that cannot be read, and reports its place.
func (w *worker) unreadable(i *item, err error) string {
	f := Finding{Effect: Unjudged, Source: i.place, Line: i.line, Message: clip(strings.TrimSpace(err.Error()))}
	w.tally.Objects++
	w.tally.Findings++
	w.tally.Unjudged++
	if len(w.batch.findings) < w.scan.options.List {
		w.batch.findings = append(w.batch.findings, f)
	}
	return isCounted
}
