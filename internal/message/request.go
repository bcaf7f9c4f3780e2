package message

import (
	"bytes"
	"slices"

	"github.com/admission-gateway/gateway/internal/octets"
)

// Underscores says what happens to a header whose name has a '_'. Many
// servers read X_Remote_User as X-Remote-User.
type Underscores uint8

// What can be done with such a header.
const (
	RefuseUnderscores Underscores = iota
	DropUnderscores
	PassUnderscores
)

// The limits of a head if Options leaves them zero.
const (
	DefaultHeadBytes   = 16 << 10
	DefaultTargetBytes = 8 << 10
	DefaultHeaders     = 128
)

// Options are the settings of the reader of requests; they differ by peer.
type Options struct {
	// HeadBytes is the largest head, request line included, TargetBytes the
	// longest request target, Headers the largest number of header lines.
	HeadBytes, TargetBytes, Headers int
	Underscores                     Underscores
	// Trusted peers may identify the client: their X-Remote-*, Impersonate-*, X-Forwarded-* and
	// X-Real-IP are kept. With Forwarded they name the client by Forwarded instead of the last two.
	// What they do not set could be a client's, and is dropped.
	Trusted, Forwarded bool
}

// Head is the head of a request. All slices alias the bytes that were parsed.
type Head struct {
	Method []byte
	// Target is the request target in origin form, byte for byte as it was received (of a target in
	// absolute form the part from the path on).
	Target []byte
	// Host is the value of Host; empty only for HTTP/1.0.
	Host []byte
	// Minor is the minor version of HTTP/1.
	Minor int
	// IsHTTP2 is set if the head came by HTTP/2. Minor is 1 then.
	IsHTTP2 bool
	// Unserved is the version of HTTP by which the request was refused, such as '2.0'.
	Unserved []byte
	// ContentLength is the length of the body: 0 if there is none, -1 if the length is not known before
	// its end.
	ContentLength int64
	// Close is set if the connection must end with the answer: the client asked for it, or asked
	// for an upgrade that it does not get.
	Close bool
	// Expect is set if the client waits for 100 (Continue) before it sends the body.
	Expect bool
	// Upgrade is the protocol that the client asks to go on in, if it asks as RFC 9110, 7.8 wants
	// it; else nil. An upgrade that is not made needs no more care: the connection ends with the
	// answer.
	Upgrade []byte

	headers []Header
	seen    FieldSet // of the lines that are not dropped
	named   FieldSet // fields about the client that Connection names
	// underscored is the name of the first header with '_', if these are refused.
	underscored []byte
}

// Headers returns the header lines in their order, dropped ones included.
func (h *Head) Headers() []Header { return h.headers }

// Copy returns a head that can be changed by itself. Its bytes are the same.
func (h *Head) Copy() Head {
	c := *h
	c.headers = slices.Clone(h.headers)
	return c
}

// HasBody reports whether a body follows the head.
func (h *Head) HasBody() bool { return h.ContentLength != 0 }

// Version is the version of HTTP by which the request came: 1.0, 1.1 or 2.0.
func (h *Head) Version() string {
	switch {
	case h.IsHTTP2:
		return "2.0"
	case h.Minor == 0:
		return "1.0"
	}
	return "1.1"
}

// IsExtendedConnect reports whether the request is an extended CONNECT of HTTP/2 (RFC 8441), to which a 2xx answers
// only if it opens the tunnel. It has the form of a GET with an Upgrade, which HTTP/2 forbids otherwise.
func (h *Head) IsExtendedConnect() bool { return h.Upgrade != nil && h.IsHTTP2 }

// IsGRPC reports whether the request is a call of gRPC: one by HTTP/2 with gRPC's media type. gRPC-Web is none.
func (h *Head) IsGRPC() bool {
	const media = "application/grpc"
	if !h.IsHTTP2 || h.Upgrade != nil {
		return false
	}
	value := h.Value(FieldContentType)
	return len(value) >= len(media) && equalFold(value[:len(media)], []byte(media)) &&
		(len(value) == len(media) || value[len(media)] == '+' || value[len(media)] == ';')
}

// NoBody notes that no body follows after all.
func (h *Head) NoBody() { h.ContentLength, h.Expect = 0, false }

// HasLength reports whether the head says how long the body is, if only that it is empty.
func (h *Head) HasLength() bool {
	for i := range h.headers {
		if h.headers[i].Field == FieldContentLength {
			return true
		}
	}
	return false
}

// Has reports whether there is a line of the field f that is not dropped.
func (h *Head) Has(f Field) bool { return h.seen.Has(f) }

// ConnectionNames reports whether the header Connection names a field f, which identifies the
// client.
func (h *Head) ConnectionNames(f Field) bool { return h.named.Has(f) }

// Drop drops the lines of the fields, as if the client had not sent them.
func (h *Head) Drop(fields FieldSet) {
	if h.seen&fields == 0 {
		return
	}
	for i := range h.headers {
		if fields.Has(h.headers[i].Field) {
			h.headers[i].Dropped = true
		}
	}
	h.seen &^= fields
}

// Value returns the value of the first line of the field f that is not dropped, nil if there is
// none.
func (h *Head) Value(f Field) []byte {
	if !h.seen.Has(f) {
		return nil
	}
	for i := range h.headers {
		if h.headers[i].Field == f && !h.headers[i].Dropped {
			return h.headers[i].Value
		}
	}
	return nil
}

// Lookup returns the value of the first line of that name (in any case) that
// is not dropped, and whether there is one.
func (h *Head) Lookup(name string) ([]byte, bool) {
	for i := range h.headers {
		l := &h.headers[i]
		if !l.Dropped && len(l.Name) == len(name) && equalFold(l.Name, []byte(name)) {
			return l.Value, true
		}
	}
	return nil, false
}

// Reset forgets the message and keeps the memory.
func (h *Head) Reset() {
	headers := h.headers[:0]
	*h = Head{}
	h.headers = headers
}

// Read reads the head of a request at the beginning of b, and returns its length. It returns 0 if b
// has no whole head, or one that is refused: HeadEnd and Parse say which.
func (h *Head) Read(b []byte, o *Options) (size int) {
	size, err := h.read(b, o)
	if err != nil {
		h.Reset()
		return 0
	}
	return size
}

// Parse reads the head of a request. b is the whole head as HeadEnd found it. After an error h may
// hold what was read before the fault: Method if the request line was well-formed so far.
func (h *Head) Parse(b []byte, o *Options) error {
	_, err := h.read(b, o)
	return err
}

// errUnended is the error of a head whose end has not come.
var errUnended = badRequest("the head of the request does not end")

func (h *Head) read(b []byte, o *Options) (size int, err error) {
	h.Reset()
	line, rest := cutLine(b)
	if line == nil {
		return 0, errUnended
	}
	if err := h.requestLine(line, o); err != nil {
		return 0, err
	}
	authority, err := h.target()
	if err != nil {
		return 0, err
	}
	var seen FieldSet
	most := cmpOr(o.Headers, DefaultHeaders)
	for {
		if len(rest) < len("\r\n") {
			return 0, errUnended
		}
		if rest[0] == '\r' && rest[1] == '\n' {
			rest = rest[len("\r\n"):]
			break
		}
		if len(h.headers) == most {
			return 0, &Error{Code: 431, Message: "the request has too many header lines"}
		}
		if len(h.headers) < cap(h.headers) {
			h.headers = h.headers[:len(h.headers)+1]
		} else {
			h.headers = append(h.headers, Header{})
		}
		l := &h.headers[len(h.headers)-1]
		n, underscore, problem := scanHeader(rest, l)
		if problem != "" {
			return 0, badRequest("the request %s", problem)
		}
		rest = rest[n:]
		if underscore && o.Underscores == DropUnderscores {
			l.Dropped, l.Field = true, FieldOther
			continue
		}
		if underscore && o.Underscores == RefuseUnderscores && h.underscored == nil {
			h.underscored = l.Name
		}
		if underscore && l.Field == FieldOther {
			l.Field = disguised(l.Name)
		}
		if l.Field == FieldOther {
			continue
		}
		if single.Has(l.Field) && seen.Has(l.Field) {
			return 0, badRequest("the request has the header '%s' more than once", l.Name)
		}
		seen |= 1 << l.Field
		if err := h.known(l, o); err != nil {
			return 0, err
		}
	}
	h.seen = seen
	return len(b) - len(rest), h.finish(authority, o)
}

// requestLine reads method, target and version.
func (h *Head) requestLine(line []byte, o *Options) error {
	i := bytes.IndexByte(line, ' ')
	if i <= 0 || i > 32 {
		return badRequest("the request line must be a method, a target and a version, each divided by one space")
	}
	method, rest := line[:i], line[i+1:]
	for _, c := range method {
		if (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return badRequest("the method must be made of capital letters")
		}
	}
	h.Method = method
	i = bytes.IndexByte(rest, ' ')
	if i <= 0 {
		return badRequest("the request line must be a method, a target and a version, each divided by one space")
	}
	target, version := rest[:i], rest[i+1:]
	if len(version) != 8 || string(version[:5]) != "HTTP/" || !digit(version[5]) || version[6] != '.' ||
		!digit(version[7]) {
		return badRequest("the request line must end in the version 'HTTP/1.1' or 'HTTP/1.0'")
	}
	if version[5] != '1' || version[7] > '1' {
		h.Unserved = version[len("HTTP/"):]
		if version[5] == '2' {
			return &Error{Code: 505, Message: "HTTP/2 is not served: the HTTP version must be 'HTTP/1.1' or 'HTTP/1.0'"}
		}
		return &Error{Code: 505, Message: "the HTTP version must be 'HTTP/1.1' or 'HTTP/1.0'"}
	}
	h.Minor = int(version[7] - '0')
	if len(target) > cmpOr(o.TargetBytes, DefaultTargetBytes) {
		return &Error{Code: 414, Message: "the request target is too long"}
	}
	h.Target = target
	return nil
}

// target checks the form of the target and cuts an absolute one down to its
// origin form; it returns the authority of an absolute target.
func (h *Head) target() (authority []byte, err error) {
	if string(h.Method) == "CONNECT" || string(h.Method) == "TRACE" {
		return nil, &Error{Code: 405, Message: "the method " + string(h.Method) + " is not supported"}
	}
	t := h.Target
	if t[0] != '/' {
		scheme := bytes.Index(t, []byte("://"))
		if scheme < 0 || !is(t[:scheme], "http") && !is(t[:scheme], "https") {
			return nil, badRequest("the request target must be a path, or an absolute URL of the scheme 'http' or 'https'")
		}
		t = t[scheme+3:]
		end := bytes.IndexAny(t, "/?#")
		if end < 0 {
			end = len(t)
		}
		if authority, t = t[:end], t[end:]; len(t) == 0 || t[0] != '/' {
			t = append([]byte("/"), t...) // the root, if a URL says no path (RFC 9112, 3.2.1)
		}
		if !validHost(authority) {
			return nil, badRequest("the request target has a host that is not a valid host with an optional port")
		}
	}
	path := true
	for i := 0; i < len(t); i++ {
		if i += beforeSpecial(t[i:]); i == len(t) {
			break
		}
		switch c := t[i]; {
		case c <= ' ' || c == 0x7f:
			return nil, badRequest("the request target must not contain spaces or control characters")
		case c == '?':
			path = false
		case c == '%' && path:
			if i+2 >= len(t) || !hex(t[i+1]) || !hex(t[i+2]) {
				return nil, badRequest("the path has a '%%' that two hexadecimal digits must follow")
			}
		}
	}
	h.Target = t
	return authority, nil
}

// beforeSpecial returns how many bytes at the beginning of a target are nothing to look at: no
// spaces, control characters, '?' and '%'.
func beforeSpecial(t []byte) int {
	i := 0
	for ; i+8 <= len(t); i += 8 {
		x := octets.Word(t[i:])
		if n := octets.First(octets.FirstBelow(x, ' '+1) | octets.FirstEqual(x, 0x7f) | octets.FirstEqual(x, '?') |
			octets.FirstEqual(x, '%')); n < 8 {
			return i + n
		}
	}
	for i < len(t) && t[i] > ' ' && t[i] != 0x7f && t[i] != '?' && t[i] != '%' {
		i++
	}
	return i
}

// known deals with one line of a field that the gateway knows.
func (h *Head) known(l *Header, o *Options) error {
	switch l.Field {
	case FieldHost:
		if !validHost(l.Value) {
			return badRequest("the header 'Host' must be a host with an optional port")
		}
		h.Host = l.Value
	case FieldContentLength:
		n, ok := length(l.Value)
		if !ok {
			return badRequest("the header 'Content-Length' must be one decimal number")
		}
		h.ContentLength = n
		l.Dropped = true
	case FieldTransferEncoding:
		if !is(l.Value, "chunked") {
			return badRequest("the header 'Transfer-Encoding' must be 'chunked'")
		}
		h.ContentLength = -1
		l.Dropped = true
	case FieldExpect:
		if !is(l.Value, "100-continue") {
			return &Error{Code: 417, Message: "the header 'Expect' must be '100-continue'"}
		}
		h.Expect = true
		l.Dropped = true
	case FieldUpgrade:
		// The upgrade is not made, so the client must not go on in the new
		// protocol on this connection.
		h.Close = true
		l.Dropped = true
		h.Upgrade = l.Value
	case FieldHTTP2Settings:
		h.Close = true
		l.Dropped = true
	case FieldImpersonate:
		// Dropping it would make the request under the caller's own rights,
		// which are more than the caller asked for.
		if !o.Trusted {
			return badRequest("the request has the header '%s': clients may not impersonate through this gateway", l.Name)
		}
	case FieldXRemote:
		l.Dropped = !o.Trusted
	case FieldXForwarded, FieldXForwardedFor, FieldXForwardedHost, FieldXForwardedProto, FieldXRealIP:
		l.Dropped = !o.Trusted || o.Forwarded
	case FieldForwarded:
		l.Dropped = !o.Trusted || !o.Forwarded
	default:
		l.Dropped = hopByHop.Has(l.Field)
	}
	return nil
}

// finish checks what only the whole head shows.
func (h *Head) finish(authority []byte, o *Options) error {
	if !h.seen.Has(FieldHost) && h.Minor > 0 {
		return badRequest("the request must have the header 'Host'")
	}
	if authority != nil && (!equalFold(authority, h.Host) || !h.seen.Has(FieldHost)) {
		return badRequest("the host of the request target must be the one in the header 'Host'")
	}
	if h.seen.Has(FieldTransferEncoding) {
		if h.seen.Has(FieldContentLength) {
			return badRequest("the request may not have both 'Content-Length' and 'Transfer-Encoding'")
		}
		if h.Minor == 0 {
			return badRequest("an HTTP/1.0 request may not have 'Transfer-Encoding'")
		}
	}
	h.Expect = h.Expect && h.Minor > 0 && h.HasBody()
	if err := h.connection(o); err != nil {
		return err
	}
	h.seen = 0
	for i := range h.headers {
		if !h.headers[i].Dropped {
			h.seen |= 1 << h.headers[i].Field
		}
	}
	return nil
}

// connection applies the Connection lines: what they name ends here.
func (h *Head) connection(o *Options) error {
	keepAlive, upgrade := false, false
	if h.seen.Has(FieldConnection) {
		for i := range h.headers {
			if h.headers[i].Field != FieldConnection {
				continue
			}
			ok := eachToken(h.headers[i].Value, func(option []byte) {
				switch {
				case is(option, "close"):
					h.Close = true
				case is(option, "keep-alive"):
					keepAlive = true
				default:
					upgrade = upgrade || is(option, "upgrade")
					h.named |= 1 << clientField(option)
					drop(h.headers, option)
				}
			})
			if !ok {
				return badRequest("the header 'Connection' must be a list of names")
			}
		}
		h.named &= aboutClient | 1<<FieldAuthorization
	}
	switch {
	// A trusted proxy passes on the Connection of its client, whose request would be made under the proxy's own rights.
	case h.named.Has(FieldImpersonate):
		return badRequest("the header 'Connection' must not name headers 'Impersonate-…'")
	// And the client would drop what the proxy says of it: a group that a policy denies by, or its
	// address.
	case o.Trusted && h.named != 0:
		return badRequest("the header 'Connection' must not name headers by which a trusted proxy tells who the client is")
	}
	if h.Minor == 0 && !keepAlive {
		h.Close = true
	}
	if !upgrade || h.Minor == 0 || h.seen.Has(FieldHTTP2Settings) || h.lines(FieldUpgrade) != 1 {
		h.Upgrade = nil
	}
	return nil
}

// CheckStrict refuses what only some servers understand, and what others than the gateway could
// therefore read in another way: a method outside the request line, a body for a method that gives
// it no meaning, and names of headers with '_', unless those are allowed.
func (h *Head) CheckStrict() error {
	if err := h.CheckNames(nil); err != nil {
		return err
	}
	return h.CheckNoBody()
}

// CheckNames refuses names of headers that servers read in different ways, and headers that name another method.
// declared has the headers of the operation; nil: no file names any.
func (h *Head) CheckNames(declared HeaderNames) error {
	if h.underscored != nil {
		if err := h.checkUnderscored(declared); err != nil {
			return err
		}
	}
	if h.Has(FieldMethodOverride) {
		for i := range h.headers {
			if l := &h.headers[i]; l.Field == FieldMethodOverride && !l.Dropped {
				return badRequest("the request has the header '%s': a request must not name its method outside the request line", l.Name)
			}
		}
	}
	return nil
}

// CheckNoBody refuses the body of a request whose method gives it no meaning.
func (h *Head) CheckNoBody() error {
	if h.HasBody() && (string(h.Method) == "GET" || string(h.Method) == "HEAD") {
		return badRequest("a %s request may not have a body", h.Method)
	}
	return nil
}

// HasUnderscore reports whether the name of a header has a '_', and is refused unless a document declares it.
func (h *Head) HasUnderscore() bool { return h.underscored != nil }

// HeaderNames are the headers that a document declares.
type HeaderNames interface {
	// HasHeader reports whether there is a header of the name.
	HasHeader(name []byte) bool
}

// MayHaveUnderscore reports whether a header whose name has a '_' has no meaning for the gateway, nor for proxies
// before and behind it, if it is read with a '-'.
func MayHaveUnderscore(name []byte) bool {
	return FieldOf(bytes.ReplaceAll(name, []byte("_"), []byte("-"))) == FieldOther
}

// checkUnderscored refuses names of headers with a '_', but for those that are declared, and that are no other header
// of the request if they are read with a '-'.
func (h *Head) checkUnderscored(declared HeaderNames) error {
	for i := range h.headers {
		l := &h.headers[i]
		if bytes.IndexByte(l.Name, '_') < 0 {
			continue
		}
		if declared == nil || !declared.HasHeader(l.Name) || !MayHaveUnderscore(l.Name) {
			return badRequest("the request has the header '%s': a header name must not contain '_'", l.Name)
		}
		for k := range h.headers {
			if other := &h.headers[k]; k != i && !other.Dropped && isSameDashed(l.Name, other.Name) {
				return badRequest("the request has the headers '%s' and '%s', which many servers take for one", l.Name,
					other.Name)
			}
		}
	}
	return nil
}

// isSameDashed reports whether two names are one if '_' is read as '-'.
func isSameDashed(a, b []byte) bool {
	dash := func(name []byte) []byte { return bytes.ReplaceAll(name, []byte("_"), []byte("-")) }
	return len(a) == len(b) && bytes.EqualFold(dash(a), dash(b))
}

// lines counts the lines of a field.
func (h *Head) lines(f Field) (n int) {
	if !h.seen.Has(f) {
		return 0
	}
	for i := range h.headers {
		if h.headers[i].Field == f {
			n++
		}
	}
	return n
}

// aboutClient are the fields that identify the client, or say what it asks for, and that only
// trusted peers may send, if any.
const aboutClient FieldSet = 1<<FieldClientAddress | 1<<FieldForwarded | 1<<FieldImpersonate | 1<<FieldMethodOverride |
	1<<FieldTargetOverride |
	1<<FieldXForwarded | 1<<FieldXForwardedFor | 1<<FieldXForwardedHost | 1<<FieldXForwardedProto | 1<<FieldXRealIP |
	1<<FieldXRemote

// disguised is the field that a name with '_' becomes if a server reads that as '-', if that field
// identifies the client.
func disguised(name []byte) Field {
	var b [32]byte // the longest name that matters is shorter, or is known by how it begins
	n := copy(b[:], name)
	for i, c := range b[:n] {
		if c == '_' {
			b[i] = '-'
		}
	}
	if f := FieldOf(b[:n]); aboutClient.Has(f) {
		return f
	}
	return FieldOther
}

// clientField is the field of a name, also of one that is disguised.
func clientField(name []byte) Field {
	if f := FieldOf(name); f != FieldOther {
		return f
	}
	return disguised(name)
}

// drop marks the lines of that name. Host stays: the gateway's own Host is derived from it, even if
// the client names it. So does what asks the gateway for an explanation: without it the request
// would be made. Lines that identify the client are not found by their field any more, since
// readers of those look at dropped ones, too.
func drop(headers []Header, name []byte) {
	for i := range headers {
		if equalFold(headers[i].Name, name) && headers[i].Field != FieldHost &&
			headers[i].Field != FieldXAdmissionExplain {
			headers[i].Dropped = true
			if headers[i].Field == FieldXRemote {
				headers[i].Field = FieldOther
			}
		}
	}
}

// validHost reports whether b is a name, an IPv4 address or an IPv6 address in
// brackets, with an optional port.
func validHost(b []byte) bool {
	if len(b) == 0 || len(b) > 260 {
		return false
	}
	host := b
	if b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 3 {
			return false
		}
		for _, c := range b[1:end] {
			if !hex(c) && c != ':' && c != '.' {
				return false
			}
		}
		host = b[end+1:]
		if len(host) == 0 {
			return true
		}
		return host[0] == ':' && validPort(host[1:])
	}
	if i := bytes.IndexByte(b, ':'); i >= 0 {
		if i == 0 || !validPort(b[i+1:]) {
			return false
		}
		host = b[:i]
	}
	for _, c := range host {
		if classes[c]&inHost == 0 {
			return false
		}
	}
	return true
}

func validPort(b []byte) bool {
	if len(b) == 0 || len(b) > 5 {
		return false
	}
	n := 0
	for _, c := range b {
		if !digit(c) {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n <= 65535
}

func digit(c byte) bool { return c-'0' <= 9 }

func hex(c byte) bool { return c-'0' <= 9 || c|0x20-'a' <= 5 }

func cmpOr(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
