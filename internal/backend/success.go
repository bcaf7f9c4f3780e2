package backend

import (
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/resource"
)

// An operation identifies one of a document: its method, and its path as the document writes it.
type operation struct{ method, route string }

// successes are what documents say at the moment, by operations. They change when the policies do.
type successes struct {
	said func() []resource.Success
	read atomic.Pointer[readSuccesses]
}

type readSuccesses struct {
	from []resource.Success
	by   map[operation]*resource.Success
}

// of returns how an operation is answered; nil if no document says it.
func (s *successes) of(o operation) *resource.Success {
	all := s.said()
	if len(all) == 0 {
		return nil
	}
	read := s.read.Load()
	if read == nil || len(read.from) != len(all) || &read.from[0] != &all[0] {
		read = &readSuccesses{all, successesOf(all)}
		s.read.Store(read)
	}
	return read.by[o]
}

// successesOf returns the answers of documents by their operations. Of several documents with an operation the first
// counts.
func successesOf(all []resource.Success) map[operation]*resource.Success {
	by := map[operation]*resource.Success{}
	for i := range all {
		for _, route := range all[i].Templates {
			if key := (operation{all[i].Method, route}); by[key] == nil {
				by[key] = &all[i]
			}
		}
	}
	return by
}

// A documented answer has a status code that the document declares, in place of one of the server's own.
type documentedResponse struct {
	http.ResponseWriter
	codes   []int
	isEmpty bool
}

// WriteHeader implements http.ResponseWriter.
func (a *documentedResponse) WriteHeader(code int) {
	if code >= 200 && code < 300 && !slices.Contains(a.codes, code) {
		code = a.codes[0]
	}
	if a.isEmpty = code == http.StatusNoContent || code == http.StatusResetContent; a.isEmpty {
		a.Header().Del("Content-Type")
		a.Header().Del("Content-Length")
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *documentedResponse) Write(body []byte) (int, error) {
	if a.isEmpty {
		return len(body), nil
	}
	return a.ResponseWriter.Write(body)
}

// Flush implements http.Flusher.
func (a *documentedResponse) Flush() {
	if f, can := a.ResponseWriter.(http.Flusher); can {
		f.Flush()
	}
}
