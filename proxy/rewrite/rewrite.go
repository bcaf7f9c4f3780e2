// Package rewrite translates between the paths that clients see and the paths that a backend gets, and between their
// names for the host.
package rewrite

import (
	"bytes"
	"strings"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
)

// Rules say what a route changes of requests and answers. Paths have no slash at the end; "" is the root.
type Rules struct {
	// From is the prefix of clients' paths, To the prefix that the backend gets in its place.
	From, To string
	// Whole takes the place of all of a client's path; empty leaves it to From and To.
	Whole string
	// Host takes the place of the client's Host; empty keeps it.
	Host string
	// Authorities are the hosts and ports of the backend itself, by which it may name its own URLs.
	Authorities []string
	// Forwarded is the header line that names the removed prefix to the backend; nil if there is
	// none.
	Forwarded []byte
}

// New returns the rules of a route; nil if it changes nothing.
func New(from, to, host string, authorities ...string) *Rules {
	if from == to && host == "" {
		return nil
	}
	r := &Rules{From: from, To: to, Host: host, Authorities: authorities}
	if from != "" && !strings.HasSuffix(to, from) {
		r.Forwarded = []byte(prefixName + ": " + from + "\r\n")
	}
	return r
}

// NewWhole returns the rules of a route by which the backend gets one path alone, with the query of the client.
func NewWhole(path, host string, authorities ...string) *Rules {
	return &Rules{Whole: path, Host: host, Authorities: authorities}
}

const prefixName = "X-Forwarded-Prefix"

// AppendTarget appends what the backend gets in place of a target below From. A path that a server could read as
// one outside of To is refused.
func (r *Rules) AppendTarget(dst, target []byte) ([]byte, error) {
	if r.Whole != "" && len(target) > 0 && target[0] == '/' {
		dst = append(dst, r.Whole...)
		if at := bytes.IndexByte(target, '?'); at >= 0 {
			dst = append(dst, target[at:]...)
		}
		return dst, nil
	}
	if r.From == r.To || len(target) == 0 || target[0] != '/' { // '*' of OPTIONS
		return append(dst, target...), nil
	}
	rest := target[len(r.From):]
	path, _, _ := bytes.Cut(rest, []byte("?"))
	if isSuspect(path) && leaves(string(path)) {
		return dst, status.BadRequest("the request path must not contain '..' as a segment, encoded or not: the path is rewritten, and must not lead out of its prefix")
	}
	start := len(dst)
	dst = append(dst, r.To...)
	if r.To == "" && (len(rest) == 0 || rest[0] != '/') {
		dst = append(dst, '/')
	}
	dst = append(dst, rest...)
	if written := dst[start:]; len(written) > 1 && (written[1] == '/' || written[1] == '\\') {
		return dst[:start], status.BadRequest("the request path must not contain '//' after the prefix '%s'", r.From)
	}
	return dst, nil
}

// maxDecodings is how often servers may decode a path, one after the other.
const maxDecodings = 4

// isSuspect reports whether a path has what a segment '..' is written with.
func isSuspect(path []byte) bool {
	return bytes.IndexByte(path, '%') >= 0 || bytes.Contains(path, []byte(".."))
}

// leaves reports whether some server could read '..' as a segment of a path.
func leaves(path string) bool {
	for range maxDecodings {
		for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
			plain, _, _ := strings.Cut(segment, ";")
			if strings.Trim(plain, " \t\x00") == ".." {
				return true
			}
		}
		next := decode(path)
		if next == path {
			return false
		}
		path = next
	}
	return true // no client encodes a path so often
}

// decode decodes each '%' that two hexadecimal digits follow.
func decode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if high, low := message.HexDigit(s[i+1]), message.HexDigit(s[i+2]); high >= 0 && low >= 0 {
				out = append(out, byte(high<<4|low))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// ForwardedLines returns the header lines that name the removed prefix to the backend. Prefixes
// that a trusted proxy in front of the gateway has stripped come first; their own lines are
// dropped.
func (r *Rules) ForwardedLines(head *message.Head) []byte {
	if r.Forwarded == nil || !head.Has(message.FieldXForwarded) {
		return r.Forwarded
	}
	before := ""
	lines := head.Headers()
	for i := range lines {
		if l := &lines[i]; !l.Dropped && l.Field == message.FieldXForwarded &&
			strings.EqualFold(string(l.Name), prefixName) {
			before, l.Dropped = strings.TrimSuffix(string(l.Value), "/"), true
		}
	}
	if before == "" {
		return r.Forwarded
	}
	return []byte(prefixName + ": " + before + r.From + "\r\n")
}
