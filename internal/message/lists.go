package message

// lists are the request fields that are defined as lists (RFC 9110, 5.6.1, and the definitions of later ones), so
// that several lines of one mean what they mean joined by commas. Of any other field each reader takes the line it
// likes.
var lists = [...]string{
	"accept", "accept-charset", "accept-encoding", "accept-language", "access-control-request-headers", "allow",
	"baggage",
	"cache-control", "connection", "content-digest", "content-language", "forwarded", "if-match", "if-none-match",
	"link", "pragma", "prefer",
	"priority", "repr-digest", "sec-websocket-extensions", "sec-websocket-protocol", "signature", "signature-input",
	"te", "tracestate", "trailer", "upgrade", "via", "want-content-digest", "want-repr-digest", "warning",
	"x-forwarded-for",
	// A front proxy sends each group of a user in a separate line.
	"x-remote-group", "impersonate-group",
}

// Repeats reports whether the request has more than one line of that name, and the field is no list. A '_' counts as
// the '-' that many servers read it as.
func (h *Head) Repeats(name string) bool {
	lines := 0
	for i := range h.headers {
		if l := &h.headers[i]; !l.Dropped && sameName(l.Name, name) {
			lines++
		}
	}
	return lines > 1 && !isList(name)
}

func isList(name string) bool {
	for _, list := range lists {
		if sameName([]byte(name), list) {
			return true
		}
	}
	return sameStart(name, "x-remote-extra-") || sameStart(name, "impersonate-extra-")
}

func sameStart(name, prefix string) bool {
	return len(name) > len(prefix) && sameName([]byte(name[:len(prefix)]), prefix)
}

// sameName compares two names without regard to case, and to the difference of '_' and '-'.
func sameName(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if plainName(c) != plainName(b[i]) {
			return false
		}
	}
	return true
}

func plainName(c byte) byte {
	if c == '_' {
		return '-'
	}
	return lower(c)
}
