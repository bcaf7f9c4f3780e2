package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// ServeHTTP answers one request: record it, read its path, apply it; faults come between.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := s.readBody(w, r)
	fault := s.fault.Load()
	if s.record != nil || fault != nil {
		seen := &Request{Method: r.Method, Target: r.RequestURI, Proto: r.Proto, Host: r.Host, Header: r.Header,
			Body: body, Err: err}
		if s.record != nil {
			s.record.add(seen)
		}
		if fault != nil && err == nil {
			if s.inject((*fault)(seen), w, r, body) {
				return
			}
		}
	}
	if err != nil {
		s.refuseBody(w, err)
		return
	}
	s.apply(w, r, body)
}

// readBody reads the whole body within the limit.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	switch {
	case r.ContentLength == 0:
		return nil, nil
	case r.ContentLength > s.maxBody:
		return nil, &http.MaxBytesError{Limit: s.maxBody}
	case r.ContentLength > 0:
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, s.maxBody))
}

func (s *Server) refuseBody(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		fail(w, http.StatusRequestEntityTooLarge, "the body may not be larger than %d bytes", tooLarge.Limit)
		return
	}
	fail(w, http.StatusBadRequest, "the body cannot be read: %v", err)
}

// apply finds what the request is about and does it.
func (s *Server) apply(w http.ResponseWriter, r *http.Request, body []byte) {
	if d := describe(s.resolvers, r.Method, r.RequestURI); d != nil {
		s.serveDescribed(w, r, d, body)
		return
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	t, ok := parsePath(path)
	if !ok && s.takesAll {
		echo(w, body)
		return
	}
	if !ok {
		fail(w, http.StatusNotFound, "%s is neither a collection nor an item", path)
		return
	}
	if t.name == "" {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			if r.Method == http.MethodGet && wantsWatch(query) {
				s.serveWatch(w, r, t)
				return
			}
			s.serveList(w, r, t)
		case http.MethodPost:
			s.serveCreate(w, path, t, body)
		default:
			if s.takesAll {
				echo(w, body)
				return
			}
			w.Header().Set("Allow", "GET, HEAD, POST")
			fail(w, http.StatusMethodNotAllowed, "%s is a collection, which does not support %s", path, r.Method)
		}
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.serveGet(w, r, path, t)
	case http.MethodPut:
		s.servePut(w, r, path, t, body)
	case http.MethodDelete:
		s.serveDelete(w, r, path, t)
	default:
		if s.takesAll {
			echo(w, body)
			return
		}
		w.Header().Set("Allow", "GET, HEAD, PUT, DELETE")
		fail(w, http.StatusMethodNotAllowed, "%s is an item, which does not support %s", path, r.Method)
	}
}

// serveDescribed serves a request that policy files describe.
func (s *Server) serveDescribed(w http.ResponseWriter, r *http.Request, d *described, body []byte) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	path = strings.TrimSuffix(path, "/")
	success := s.successOf(r, d)
	if success != nil {
		w = &documentedResponse{ResponseWriter: w, codes: success.Codes}
	}
	switch {
	case d.isOperation:
		perform(w, success, body)
	case r.Method == http.MethodPost && d.target.name == "":
		s.createDescribed(w, d, path, jsonOr(body))
	case d.target.name == "" && r.Method == http.MethodGet && wantsWatch(query):
		s.serveWatch(w, r, d.target)
	case d.target.name == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		objects, etag := s.store.list(d.target)
		answer(w, r, http.StatusOK, etag, listOf(objects, d.resource))
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		s.serveGet(w, r, path, d.target)
	case r.Method == http.MethodPut:
		s.replace(w, r, path, d.target, jsonOr(body))
	case r.Method == http.MethodPatch:
		s.servePatch(w, r, path, d.target, body)
	case r.Method == http.MethodDelete && d.target.name != "":
		s.serveDelete(w, r, path, d.target)
	case r.Method == http.MethodDelete:
		s.store.clear(d.target)
		w.WriteHeader(http.StatusNoContent)
	default:
		echo(w, body)
	}
}

// createDescribed stores a new object under the name that its field has, or one that is made.
func (s *Server) createDescribed(w http.ResponseWriter, d *described, path string, body []byte) {
	name := ""
	if of := d.resource; of.Envelope == resource.Bare {
		name = textAt(body, of.Fields.Name)
	} else {
		name = textAt(body, resource.FieldPath{"metadata", "name"})
	}
	if name == "" {
		name = s.makeName()
	}
	d.target.name = name
	s.insert(w, path, d.target, body)
}

// jsonOr returns a body that is JSON, and an empty object in place of any other.
func jsonOr(body []byte) []byte {
	if !json.Valid(body) {
		return []byte("{}")
	}
	return body
}

// echo answers an operation with the body that it got, if that is JSON.
func echo(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(jsonOr(body)) // the client may be gone
}

// perform answers an operation that is no verb of a resource: as its document says, or with the body that it got.
func perform(w http.ResponseWriter, of *resource.Success, body []byte) {
	if of == nil || of.Body == nil && of.Codes[0] != http.StatusNoContent {
		echo(w, body)
		return
	}
	if of.Media != "" {
		w.Header().Set("Content-Type", of.Media)
	}
	w.WriteHeader(of.Codes[0])
	_, _ = w.Write(of.Body) // the client may be gone
}

// successOf returns how the document of an operation says that it is answered; nil if none does.
func (s *Server) successOf(r *http.Request, d *described) *resource.Success {
	if s.successes == nil {
		return nil
	}
	return s.successes.of(operation{r.Method, d.info.Route})
}

// listOf returns the list of objects as a resource has it.
func listOf(objects []*object, of *resource.Resource) []byte {
	path := []string{"items"}
	if of.Envelope == resource.Bare && of.Fields.Items != nil {
		path = of.Fields.Items
	}
	var body []byte
	for _, key := range path {
		body = append(document.AppendString(append(body, '{'), key), ':')
	}
	body = append(body, '[')
	for i, o := range objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, o.body...)
	}
	body = append(body, ']')
	return append(body, strings.Repeat("}", len(path))...)
}

// servePatch applies a patch.
func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, path string, t target, body []byte) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		media = ""
	}
	o, err := s.store.update(t, conditionOf(r), func(old []byte) ([]byte, error) { return patched(old, media, body) })
	s.answerWrite(w, path, o, false, err)
}

// patched returns what comes of a patch.
func patched(old []byte, media string, body []byte) ([]byte, error) {
	patch, err := document.Parse(body, document.Limits{})
	if err != nil {
		return nil, patchError{err}
	}
	defer patch.Release()
	d, err := document.Parse(old, document.Limits{})
	if err != nil {
		return nil, patchError{err}
	}
	defer d.Release()
	if media == "application/json-patch+json" {
		if err := d.ApplyJSONPatch(patch.Root(), document.Limits{}); err != nil {
			return nil, patchError{err}
		}
	} else {
		d.MergePatch(patch.Root())
	}
	return d.AppendTo(nil), nil
}

// A patchError says why a patch cannot be applied.
type patchError struct{ error }

// wantsWatch reports whether the query asks for a stream.
func wantsWatch(query string) bool {
	for one := range strings.SplitSeq(query, "&") {
		if one == "watch=true" || one == "watch=1" {
			return true
		}
	}
	return false
}

func (s *Server) serveGet(w http.ResponseWriter, r *http.Request, path string, t target) {
	o, ok := s.store.get(t)
	if !ok {
		fail(w, http.StatusNotFound, "%s does not exist", path)
		return
	}
	answer(w, r, http.StatusOK, o.etag, o.body)
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, t target) {
	objects, etag := s.store.list(t)
	size := len(`{"items":[]}`)
	for _, o := range objects {
		size += len(o.body) + 1
	}
	body := make([]byte, 0, size)
	body = append(body, `{"items":[`...)
	for i, o := range objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, o.body...)
	}
	answer(w, r, http.StatusOK, etag, append(body, "]}"...))
}

func (s *Server) serveCreate(w http.ResponseWriter, path string, t target, body []byte) {
	name, err := nameOf(body)
	if err != nil && s.takesAll {
		name, body, err = s.makeName(), jsonOr(body), nil
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	t.name = name
	s.insert(w, path, t, body)
}

// makeName returns a name for an object that has none.
func (s *Server) makeName() string { return "made-" + strconv.FormatUint(s.names.Add(1), 10) }

// insert stores a new object.
func (s *Server) insert(w http.ResponseWriter, path string, t target, body []byte) {
	o, err := s.store.create(t, body)
	item := path + "/" + url.PathEscape(t.name)
	switch {
	case errors.Is(err, errExists):
		fail(w, http.StatusConflict, "%s exists already", item)
	case err != nil:
		s.failFull(w)
	default:
		w.Header().Set("Location", item)
		answer(w, nil, http.StatusCreated, o.etag, o.body)
	}
}

func (s *Server) servePut(w http.ResponseWriter, r *http.Request, path string, t target, body []byte) {
	if s.takesAll {
		body = jsonOr(body)
	}
	if err := validBody(body); err != nil && !s.takesAll {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	s.replace(w, r, path, t, body)
}

// replace stores an object in the place of the one that is there, if any.
func (s *Server) replace(w http.ResponseWriter, r *http.Request, path string, t target, body []byte) {
	o, created, err := s.store.put(t, body, conditionOf(r))
	s.answerWrite(w, path, o, created, err)
}

// answerWrite answers a write of an item by what came of it.
func (s *Server) answerWrite(w http.ResponseWriter, path string, o *object, created bool, err error) {
	var refused patchError
	switch {
	case errors.Is(err, errMismatch):
		fail(w, http.StatusPreconditionFailed, "%s: the precondition of the request does not hold", path)
	case errors.Is(err, errMissing):
		fail(w, http.StatusNotFound, "%s does not exist", path)
	case errors.As(err, &refused):
		fail(w, http.StatusUnprocessableEntity, "%v", err)
	case err != nil:
		s.failFull(w)
	case created:
		answer(w, nil, http.StatusCreated, o.etag, o.body)
	default:
		answer(w, nil, http.StatusOK, o.etag, o.body)
	}
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, path string, t target) {
	switch err := s.store.delete(t, conditionOf(r)); {
	case errors.Is(err, errMissing):
		fail(w, http.StatusNotFound, "%s does not exist", path)
	case err != nil:
		fail(w, http.StatusPreconditionFailed, "%s: the precondition of the request does not hold", path)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func conditionOf(r *http.Request) condition {
	return condition{
		match:     strings.Join(r.Header["If-Match"], ","),
		noneMatch: strings.Join(r.Header["If-None-Match"], ","),
	}
}

// answer sends JSON; a request that has the version already gets 304. r is nil for writes.
func answer(w http.ResponseWriter, r *http.Request, code int, etag string, body []byte) {
	h := w.Header()
	h.Set("ETag", etag)
	if r != nil {
		if known := strings.Join(r.Header["If-None-Match"], ","); known != "" && matches(known, etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

func (s *Server) failFull(w http.ResponseWriter) {
	fail(w, http.StatusInsufficientStorage, "the store is full: it holds %d objects", s.store.len())
}

// fail answers with a sentence in plain text, as many an API does.
func fail(w http.ResponseWriter, code int, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, format+"\n", args...) // the client may be gone
}

// validBody accepts exactly one JSON object.
func validBody(body []byte) error {
	var fields struct{}
	return decode(body, &fields)
}

// nameOf finds an object's name: metadata.name, else name, else id, which may also be a number.
func nameOf(body []byte) (string, error) {
	var fields struct {
		Metadata struct {
			Name any `json:"name"`
		} `json:"metadata"`
		Name any `json:"name"`
		ID   any `json:"id"`
	}
	if err := decode(body, &fields); err != nil {
		return "", err
	}
	for _, v := range []any{fields.Metadata.Name, fields.Name, fields.ID} {
		var name string
		switch v := v.(type) {
		case string:
			name = v
		case int64:
			name = strconv.FormatInt(v, 10)
		}
		if name == "" {
			continue
		}
		if name == "." || name == ".." || url.PathEscape(name) != name {
			return "", fmt.Errorf("the name %q must not need escaping in a path", name)
		}
		return name, nil
	}
	return "", errors.New("the object has no name: one of metadata.name, name and id must be set")
}

// decode reads one JSON object without folding the case of its keys.
func decode(body []byte, into any) error {
	i := 0
	for i < len(body) && strings.IndexByte(" \t\r\n", body[i]) >= 0 {
		i++
	}
	if i == len(body) || body[i] != '{' {
		return errors.New("the body must be a JSON object")
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return fmt.Errorf("the body must be a JSON object: %w", err)
	}
	return nil
}
