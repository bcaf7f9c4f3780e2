package h2

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/net/http2/hpack"

	"github.com/admission-gateway/gateway/internal/message"
)

// HeaderTable is the size of the table by which a peer shortens the fields that it sends.
const HeaderTable = 4096

// A RequestReader makes of the blocks of a connection the heads of requests, as text of HTTP/1.1, and
// trailers. The blocks have to be read in their order, each to its end.
type RequestReader struct {
	decoder *hpack.Decoder
	most    int // bytes of a head
	isBody  bool

	text      []byte
	bad       *message.Error // the first fault
	isTrailer bool
	hasLine   bool // the request line is in the text
	hasLength bool // there is a content-length
	cookie    []byte
	pseudo    pseudo
	size      int // of the fields, also after a fault
}

// pseudo are the pseudo fields of a request; empty ones did not come.
type pseudo struct{ method, scheme, authority, path, protocol string }

// NewRequestReader returns the reader of a connection.
func NewRequestReader() *RequestReader {
	r := &RequestReader{}
	r.decoder = hpack.NewDecoder(HeaderTable, r.field)
	r.decoder.SetAllowedMaxDynamicTableSize(HeaderTable)
	return r
}

// Begin starts a block, of a head or of trailers, whose text has at most so many bytes. A body follows a head with
// hasBody. The text is appended to memory.
func (r *RequestReader) Begin(memory []byte, most int, isTrailer, hasBody bool) {
	*r = RequestReader{decoder: r.decoder, most: most, text: memory[:0], isTrailer: isTrailer, isBody: hasBody,
		cookie: r.cookie[:0]}
	r.decoder.SetEmitEnabled(true)
}

// Write reads a part of the block. An error ends the connection: the table is not known any more.
func (r *RequestReader) Write(fragment []byte) error {
	_, err := r.decoder.Write(fragment)
	return err
}

// End returns the text, the empty line included, when the block is over: a head for [message.Head.Parse],
// or trailers for [message.ParseTrailers]. A request that is malformed has bad, a [*message.Error]; what there is of
// its text may be salvaged.
func (r *RequestReader) End() (text []byte, bad, err error) {
	if err := r.decoder.Close(); err != nil {
		return nil, nil, err
	}
	if !r.isTrailer {
		r.line()
		r.end()
	}
	r.text = append(r.text, "\r\n"...)
	if r.bad == nil && len(r.text) > r.most {
		r.tooLarge()
	}
	if r.bad != nil {
		bad = r.bad
	}
	return r.text, bad, nil
}

// Protocol returns the protocol that a request by extended CONNECT asks to go on in; else "".
func (r *RequestReader) Protocol() string { return r.pseudo.protocol }

// end appends what follows the client's lines.
func (r *RequestReader) end() {
	if len(r.cookie) > 0 {
		r.append("cookie", string(r.cookie))
	}
	switch {
	case r.pseudo.protocol != "":
		// The backend is asked by HTTP/1.1, whose handshake has a nonce (RFC 8441, 5).
		var nonce [16]byte
		_, _ = rand.Read(nonce[:]) // it never fails
		r.append("connection", "Upgrade")
		r.append("upgrade", r.pseudo.protocol)
		r.append("sec-websocket-key", base64.StdEncoding.EncodeToString(nonce[:]))
	case r.isBody && !r.hasLength:
		r.append("transfer-encoding", "chunked")
	}
}

// field takes the next field of the block.
func (r *RequestReader) field(f hpack.HeaderField) {
	if r.size += len(f.Name) + len(f.Value) + len(": \r\n"); r.size > r.most {
		r.tooLarge()
		return
	}
	if strings.HasPrefix(f.Name, ":") && r.bad == nil {
		r.pseudoField(&f)
		return
	}
	if !r.isTrailer {
		r.line()
	}
	if r.bad != nil {
		return
	}
	if flaw := fieldFlaw(f.Name, f.Value); flaw != "" {
		r.refuse("the request has %s", flaw)
		return
	}
	if r.isTrailer {
		r.append(f.Name, f.Value)
		return
	}
	r.regular(f.Name, f.Value)
}

// tooLarge refuses the request. No further field is looked at, but the table stays right.
func (r *RequestReader) tooLarge() {
	r.decoder.SetEmitEnabled(false)
	if r.bad == nil {
		r.bad = &message.Error{Code: 431, Message: "the head of the request is too large"}
		if len(r.pseudo.path) > r.most/2 {
			r.bad = &message.Error{Code: 414, Message: "the request target is too long"}
		}
	}
}

func (r *RequestReader) refuse(format string, args ...any) {
	if r.bad == nil {
		r.bad = &message.Error{Code: 400, Message: fmt.Sprintf(format, args...)}
	}
}

func (r *RequestReader) append(name, value string) {
	r.text = append(append(append(append(r.text, name...), ": "...), value...), "\r\n"...)
}

// regular takes a field that is not a pseudo field.
func (r *RequestReader) regular(name, value string) {
	switch name {
	case "cookie":
		// Each crumb is a field of its own, so that tables can keep it (RFC 9113, 8.2.3).
		if len(r.cookie) > 0 {
			r.cookie = append(r.cookie, "; "...)
		}
		r.cookie = append(r.cookie, value...)
		return
	case "host":
		if r.pseudo.authority != "" {
			if !strings.EqualFold(value, r.pseudo.authority) {
				r.refuse("the request has a header 'host' that is not its ':authority'")
			}
			return
		}
	case "te":
		if value != "trailers" {
			r.refuse("the request has a header 'te' that is not 'trailers'")
			return
		}
	case "content-length":
		r.hasLength = true
	case "sec-websocket-key":
		if r.pseudo.protocol != "" {
			return
		}
	}
	r.append(name, value)
}

// pseudoField takes a pseudo field (RFC 9113, 8.3).
func (r *RequestReader) pseudoField(f *hpack.HeaderField) {
	var to *string
	switch f.Name {
	case ":method":
		to = &r.pseudo.method
	case ":scheme":
		to = &r.pseudo.scheme
	case ":authority":
		to = &r.pseudo.authority
	case ":path":
		to = &r.pseudo.path
	case ":protocol":
		to = &r.pseudo.protocol
	}
	switch {
	case r.isTrailer:
		r.refuse("the request has a pseudo header field among its trailers")
	case to == nil:
		r.refuse("the request has a pseudo header field that requests do not have")
	case r.hasLine:
		r.refuse("the request has the pseudo header field '%s' after a header", f.Name)
	case *to != "":
		r.refuse("the request has the pseudo header field '%s' more than once", f.Name)
	case f.Value == "":
		r.refuse("the request has an empty pseudo header field '%s'", f.Name)
	case !isVisible(f.Value):
		r.refuse("the request has a pseudo header field '%s' with a space or a control character", f.Name)
	default:
		*to = f.Value
	}
}

// line appends the request line and Host, once the pseudo fields are over.
func (r *RequestReader) line() {
	if r.hasLine {
		return
	}
	r.hasLine = true
	p := &r.pseudo
	method, target := p.method, p.path
	switch {
	case r.bad != nil:
		// What is known of the request says how it is refused.
	case method == "":
		r.refuse("the request has no pseudo header field ':method'")
	case method == "CONNECT" && p.protocol == "":
		if target = p.authority; target == "" || p.path != "" || p.scheme != "" {
			r.refuse("a CONNECT request must have ':authority', and neither ':scheme' nor ':path'")
		}
	case p.protocol != "" && method != "CONNECT":
		r.refuse("the request has the pseudo header field ':protocol' although its method is not 'CONNECT'")
	case p.scheme == "":
		r.refuse("the request has no pseudo header field ':scheme'")
	case p.scheme != "http" && p.scheme != "https":
		r.refuse("the request has a ':scheme' that is neither 'http' nor 'https'")
	case p.path == "":
		r.refuse("the request has no pseudo header field ':path'")
	case p.path[0] != '/' && p.path != "*":
		r.refuse("the request has a ':path' that does not start with '/'")
	case strings.Contains(p.authority, "@"):
		r.refuse("the request has an ':authority' with a user")
	case p.protocol != "" && p.protocol != "websocket":
		r.bad = &message.Error{Code: 501,
			Message: "the only protocol that a request can ask for by ':protocol' is 'websocket'"}
	}
	if method == "" || target == "" {
		return
	}
	if p.protocol != "" {
		method = "GET"
	}
	r.text = append(append(append(append(append(r.text, method...), ' '), target...), " HTTP/1.1"...), "\r\n"...)
	if p.authority != "" {
		r.append("host", p.authority)
	}
}

// fieldFlaw says what is wrong with a field by the rules of RFC 9113, 8.2; empty is nothing.
func fieldFlaw(name, value string) string {
	if name == "" {
		return "a header without a name"
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			return "a header name with a capital letter"
		case !message.IsInToken(c):
			return "a header name with a character that may not be in one"
		}
	}
	// A conversion of so few bytes takes no memory.
	if len(name) <= len("transfer-encoding") && isConnectionSpecific([]byte(name)) {
		return "the header '" + name + "', which HTTP/2 does not have"
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "a header value with a control character"
		}
	}
	if value != "" && (isBlank(value[0]) || isBlank(value[len(value)-1])) {
		return "a header value with a space at its start or end"
	}
	return ""
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isVisible reports whether a text has neither spaces nor control characters.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
