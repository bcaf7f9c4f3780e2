package h2

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http2/hpack"

	"github.com/admission-gateway/gateway/internal/message"
)

// A ResponseReader makes of the blocks of a connection the heads of answers, as text of HTTP/1.1, and
// trailers. The blocks have to be read in their order, each to its end.
type ResponseReader struct {
	decoder *hpack.Decoder
	most    int // bytes of a head

	text      []byte
	bad       *message.Error // the first fault
	isTrailer bool
	isStarted bool // the status line is in the text
	size      int  // of the fields
}

// NewResponseReader returns the reader of a connection. The text of a block has at most so many bytes.
func NewResponseReader(most int) *ResponseReader {
	r := &ResponseReader{most: most}
	r.decoder = hpack.NewDecoder(HeaderTable, r.field)
	r.decoder.SetAllowedMaxDynamicTableSize(HeaderTable)
	return r
}

// Begin starts a block, of a head or of trailers. The text is appended to memory.
func (r *ResponseReader) Begin(memory []byte, isTrailer bool) {
	*r = ResponseReader{decoder: r.decoder, most: r.most, text: memory[:0], isTrailer: isTrailer}
	r.decoder.SetEmitEnabled(true)
}

// Write reads a part of the block. An error ends the connection: the table is not known any more.
func (r *ResponseReader) Write(fragment []byte) error {
	_, err := r.decoder.Write(fragment)
	return err
}

// End returns the text, the empty line included, when the block is over: a head for [message.Answer.Parse],
// or trailers for [message.ParseTrailers]. An answer that is malformed has bad, a *message.Error.
func (r *ResponseReader) End() (text []byte, bad, err error) {
	if err := r.decoder.Close(); err != nil {
		return nil, nil, err
	}
	if !r.isTrailer && !r.isStarted {
		r.refuse("has no pseudo header field ':status'")
	}
	if r.bad != nil {
		return nil, r.bad, nil
	}
	return append(r.text, "\r\n"...), nil, nil
}

// field takes the next field of the block.
func (r *ResponseReader) field(f hpack.HeaderField) {
	if r.size += len(f.Name) + len(f.Value) + len(": \r\n"); r.size > r.most {
		// No further field is looked at, but the table stays right.
		r.decoder.SetEmitEnabled(false)
		r.bad = &message.Error{Code: 502, Message: "the head of the answer is too large"}
		return
	}
	if r.bad != nil {
		return
	}
	if strings.HasPrefix(f.Name, ":") {
		r.pseudoField(f.Name, f.Value)
		return
	}
	if flaw := fieldFlaw(f.Name, f.Value); flaw != "" {
		r.refuse("has %s", flaw)
		return
	}
	if !r.isTrailer && !r.isStarted {
		r.refuse("has no pseudo header field ':status' before its headers")
		return
	}
	r.text = append(append(append(append(r.text, f.Name...), ": "...), f.Value...), "\r\n"...)
}

// pseudoField takes a pseudo field, and starts the text with the status (RFC 9113, 8.3.2).
func (r *ResponseReader) pseudoField(name, value string) {
	switch {
	case r.isTrailer:
		r.refuse("has a pseudo header field among its trailers")
	case name != ":status":
		r.refuse("has a pseudo header field that answers do not have")
	case r.isStarted:
		r.refuse("has the pseudo header field ':status' more than once")
	case len(value) != 3 || !isDigit(value[0]) || !isDigit(value[1]) || !isDigit(value[2]):
		r.refuse("has a pseudo header field ':status' that is not three digits")
	default:
		r.isStarted = true
		code := int(value[0]-'0')*100 + int(value[1]-'0')*10 + int(value[2]-'0')
		r.text = append(append(append(r.text, "HTTP/1.1 "...), value...), ' ')
		r.text = append(append(r.text, http.StatusText(code)...), "\r\n"...)
	}
}

func (r *ResponseReader) refuse(format string, args ...any) {
	if r.bad == nil {
		r.bad = &message.Error{Code: 502, Message: "the answer " + fmt.Sprintf(format, args...)}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
