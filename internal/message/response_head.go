package message

import "bytes"

// ResponseHead is the head of a response of a backend. Its slices alias the bytes
// that were parsed.
type ResponseHead struct {
	// Status is the status code, 100 to 599.
	Status int
	// ContentLength is -1 if the head does not give it.
	ContentLength int64
	Chunked       bool
	// Close is set if the connection ends with this answer.
	Close bool
	// Upgrade is the protocol that a 101 (Switching Protocols) goes on in; nil if it does not say
	// so in one way only.
	Upgrade []byte
	// Trailer is what the answer says of the fields that will come behind its body; nil if it says nothing.
	Trailer []byte
	// HasLocation is set if the answer names a URL, in Location or Content-Location.
	HasLocation bool

	headers []Header
	lines   []span // of each header line in the head, CR LF included
}

type span struct{ start, end int }

// NoBody reports whether an answer of that status to that method never has a
// body, whatever its head says (RFC 9112, 6.3).
func (a *ResponseHead) NoBody(head bool) bool {
	return head || a.Status < 200 || a.Status == 204 || a.Status == 304
}

// Read reads the head of an answer at the beginning of b as Head.Read reads the head of a request.
func (a *ResponseHead) Read(b []byte) (size int) {
	size, err := a.read(b)
	if err != nil {
		return 0
	}
	return size
}

// Parse reads the head of an answer as strictly as Head.Parse reads the head of a request. b is the
// whole head as HeadEnd found it.
func (a *ResponseHead) Parse(b []byte) error {
	_, err := a.read(b)
	return err
}

// errUnendedAnswer is the error of a head whose end has not come.
var errUnendedAnswer = badAnswer("the head of the answer does not end")

func (a *ResponseHead) read(b []byte) (size int, err error) {
	headers, lines := a.headers[:0], a.lines[:0]
	*a = ResponseHead{ContentLength: -1}
	a.headers, a.lines = headers, lines
	line, rest := cutLine(b)
	if line == nil {
		return 0, errUnendedAnswer
	}
	minor, err := a.statusLine(line)
	if err != nil {
		return 0, err
	}
	var seen FieldSet
	var keepAlive, named, upgrade bool
	for {
		if len(rest) < len("\r\n") {
			return 0, errUnendedAnswer
		}
		start := len(b) - len(rest)
		if rest[0] == '\r' && rest[1] == '\n' {
			rest = rest[len("\r\n"):]
			break
		}
		if len(a.headers) < cap(a.headers) {
			a.headers = a.headers[:len(a.headers)+1]
		} else {
			a.headers = append(a.headers, Header{})
		}
		l := &a.headers[len(a.headers)-1]
		n, _, problem := scanHeader(rest, l)
		if problem != "" {
			return 0, badAnswer("the answer %s", problem)
		}
		rest = rest[n:]
		a.lines = append(a.lines, span{start, start + n})
		if l.Field == FieldOther {
			a.HasLocation = a.HasLocation || is(l.Name, "location") || is(l.Name, "content-location")
			continue
		}
		if single.Has(l.Field) && seen.Has(l.Field) {
			return 0, badAnswer("the answer has the header '%s' more than once", l.Name)
		}
		again := seen.Has(l.Field)
		seen |= 1 << l.Field
		l.Dropped = hopByHop.Has(l.Field)
		switch l.Field {
		case FieldContentLength:
			n, ok := length(l.Value)
			if !ok {
				return 0, badAnswer("the answer has a 'Content-Length' that is not one decimal number")
			}
			a.ContentLength = n
			// A 204 has no body and must not announce one.
			l.Dropped = a.Status == 204
		case FieldTransferEncoding:
			if !is(l.Value, "chunked") || minor == 0 {
				return 0, badAnswer("the answer has a 'Transfer-Encoding' that is not supported")
			}
			a.Chunked = true
		case FieldTrailer:
			if again {
				a.Trailer = append(append(bytes.Clone(a.Trailer), ", "...), l.Value...)
			} else {
				a.Trailer = l.Value
			}
		case FieldConnection:
			named = true
		case FieldUpgrade:
			if a.Upgrade = l.Value; again {
				a.Upgrade = nil
			}
		}
	}
	if a.Chunked && a.ContentLength >= 0 {
		return 0, badAnswer("the answer has both 'Content-Length' and 'Transfer-Encoding'")
	}
	if named {
		for i := range a.headers {
			if a.headers[i].Field != FieldConnection {
				continue
			}
			ok := eachToken(a.headers[i].Value, func(option []byte) {
				switch {
				case is(option, "close"):
					a.Close = true
				case is(option, "keep-alive"):
					keepAlive = true
				case is(option, "content-length"):
					// The length of the body is end to end.
				default:
					upgrade = upgrade || is(option, "upgrade")
					drop(a.headers, option)
				}
			})
			if !ok {
				return 0, badAnswer("the answer has a 'Connection' that is not a list of names")
			}
		}
	}
	if minor == 0 && !keepAlive {
		a.Close = true
	}
	if a.Status != 101 || !upgrade || minor == 0 {
		a.Upgrade = nil
	}
	return len(b) - len(rest), nil
}

func (a *ResponseHead) statusLine(line []byte) (minor int, err error) {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] > '1' || line[7] < '0' || line[8] != ' ' ||
		len(line) > 12 && line[12] != ' ' || !digit(line[9]) || !digit(line[10]) || !digit(line[11]) {
		return 0, badAnswer("the answer does not start with a status line of HTTP/1.1 or HTTP/1.0")
	}
	a.Status = int(line[9]-'0')*100 + int(line[10]-'0')*10 + int(line[11]-'0')
	if a.Status < 100 || a.Status > 599 {
		return 0, badAnswer("the answer has a status code outside 100 to 599")
	}
	if !validValue(line[12:]) {
		return 0, badAnswer("the answer has a control character in its status line")
	}
	return int(line[7] - '0'), nil
}

// Value returns the value of the first line of the field f, nil if there is none.
func (a *ResponseHead) Value(f Field) []byte {
	for i := range a.headers {
		if a.headers[i].Field == f && !a.headers[i].Dropped {
			return a.headers[i].Value
		}
	}
	return nil
}

// Drop takes the lines of that name out of the head that Compact makes.
func (a *ResponseHead) Drop(name string) { drop(a.headers, []byte(name)) }

// Compact takes the dropped lines out of the head b that was parsed, by moving
// what stands before them towards its end. It returns the number of bytes at
// the start of b that are no longer part of the head. The values of the lines
// are no longer valid after it.
func (a *ResponseHead) Compact(b []byte) int {
	to, from := len(b), len(b)
	for i := len(a.lines) - 1; i >= 0; i-- {
		if !a.headers[i].Dropped {
			continue
		}
		keep := b[a.lines[i].end:from]
		to -= len(keep)
		copy(b[to:], keep)
		from = a.lines[i].start
	}
	if to == from {
		return 0
	}
	keep := b[:from]
	to -= len(keep)
	copy(b[to:], keep)
	return to
}

// extend adds the lines from an offset on to the index of the head b, to which they were added after it was parsed.
func (a *ResponseHead) extend(b []byte, from int) {
	for from < len(b)-len("\r\n") {
		a.headers = append(a.headers, Header{})
		size, _, _ := scanHeader(b[from:], &a.headers[len(a.headers)-1]) // what the gateway adds is good
		a.lines = append(a.lines, span{from, from + size})
		from += size
	}
}
