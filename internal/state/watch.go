package state

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/admission-gateway/gateway/internal/document"
)

// errGone means that a watch cannot be resumed: the collection has to be listed anew.
var errGone = errors.New("the backend no longer knows the version to watch from")

// errSilent means that a watch has not ended although its time was over: nothing carries what the backend sends.
var errSilent = errors.New("the backend is silent")

// maxEvent is how large one event of a watch may be, in bytes.
const maxEvent = 16 << 20

// watch follows the changes of the collection from a version, until the backend ends the stream, and returns how far it
// came. The backend is asked to end it after a time. opened is called when it has begun.
func (f *feed) watch(ctx context.Context, b Backend, from string, asked time.Duration, live Liveness,
	opened func()) (version string, err error) {
	target := withQuery(f.source.target(""),
		fmt.Sprintf("watch=true&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s",
			int(asked.Seconds()), url.QueryEscape(from)))
	parent := ctx
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	code, body, err := b.Open(ctx, target, live.Open)
	if err != nil {
		return from, err
	}
	silence := time.AfterFunc(asked+live.Grace, cancel)
	defer silence.Stop()
	defer func() { _ = body.Close() }()
	switch code {
	case http.StatusOK:
	case http.StatusGone:
		return from, errGone
	default:
		return from, errAnswer(code, target)
	}
	f.prove()
	opened()
	events := bufio.NewReaderSize(body, 32<<10)
	for {
		line, err := readLine(events)
		if err != nil {
			switch {
			case err == io.EOF:
				f.prove()
				err = nil
			case ctx.Err() != nil && parent.Err() == nil:
				err = errSilent
			}
			return from, err
		}
		if len(line) == 0 {
			continue
		}
		next, err := f.apply(line)
		if err != nil {
			return from, err
		}
		f.prove()
		silence.Reset(asked + live.Grace) // whoever sends events is alive, even behind the end of its time
		f.events.Add(1)
		f.lastEvent.Store(time.Now().UnixNano())
		from = next
	}
}

// readLine reads an event into memory of its own.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSpace(line), nil
		case err == io.EOF && len(bytes.TrimSpace(line)) > 0:
			return nil, io.ErrUnexpectedEOF // half an event
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > maxEvent:
			return nil, errTooMany
		}
	}
}

// apply takes one event in and returns the version that it brought the collection to.
func (f *feed) apply(event []byte) (version string, err error) {
	d, err := document.Parse(event, limitsFor(len(event)))
	if err != nil {
		return "", errNotJSON
	}
	d.Compact()
	object, _ := d.Root().Get("object")
	if object.Kind() != document.Object {
		return "", errNotJSON
	}
	metadata, _ := object.Get("metadata")
	version = text(metadata, "resourceVersion")
	switch text(d.Root(), "type") {
	case "ADDED", "MODIFIED":
		if objects, bytes := f.store.put(object, len(object.Raw())); objects > f.source.MaxObjects ||
			bytes > f.source.MaxBytes {
			return "", errTooMany
		}
		f.read(f.source.Kind)
	case "DELETED":
		f.store.remove(object)
		f.read(f.source.Kind)
	case "BOOKMARK":
	case "ERROR":
		if code, _ := object.Get("code"); string(code.Raw()) == "410" {
			return "", errGone
		}
		return "", errors.New("the backend broke off the watch")
	default:
		return "", errNotJSON
	}
	if version == "" {
		return "", errNotJSON
	}
	return version, nil
}
