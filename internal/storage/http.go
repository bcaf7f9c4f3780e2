package storage

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/cel"
)

// HTTP is a request as expressions see it in the variable http.
type HTTP Request

var _ cel.HTTP = (*HTTP)(nil)

// Method returns the method.
func (h *HTTP) Method() string { return str(h.Head.Method) }

// Host returns the host that the client asks.
func (h *HTTP) Host() string { return str(h.Head.Host) }

// Path implements cel.HTTP.
func (h *HTTP) Path() string { return h.Info.Path }

// Route implements cel.HTTP.
func (h *HTTP) Route() string { return h.Info.Route }

// Query implements cel.HTTP.
func (h *HTTP) Query() string { return h.Info.Query }

// Parameters implements cel.HTTP.
func (h *HTTP) Parameters(yield func(name, raw string) bool) { h.Info.Parameters(yield) }

// Lines implements cel.HTTP. What proves who the client is stays hidden, lest a message repeats it.
func (h *HTTP) Lines(yield func(name, value string) bool) {
	for _, l := range h.Head.Headers() {
		if !l.Dropped && !isCredential(l.Name) && !yield(str(l.Name), str(l.Value)) {
			return
		}
	}
}

// Credentials calls a function for each header line that Lines hides.
func (h *HTTP) Credentials(yield func(name, value string) bool) {
	for _, l := range h.Head.Headers() {
		if !l.Dropped && isCredential(l.Name) && !yield(str(l.Name), str(l.Value)) {
			return
		}
	}
}

// credentials are the headers that expressions do not see.
var credentials = [][]byte{[]byte("Authorization"), []byte("Proxy-Authorization"), []byte("Cookie")}

func isCredential(name []byte) bool {
	for _, c := range credentials {
		if len(c) == len(name) && bytes.EqualFold(c, name) {
			return true
		}
	}
	return false
}
