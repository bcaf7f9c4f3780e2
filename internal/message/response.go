package message

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A Response is an answer on its way to the client. Its head is bytes, as the backend sent them or
// as the gateway makes them. Its body stands behind the head, is bytes of its own, or is a stream
// that is still on its way.
//
// An unchanged answer is sent in the bytes that were received. The head is parsed, once, when a
// header is read or a line is taken out. The memory of a response is used again by the next one.
type Response struct {
	status int
	// bytes[start:head] is the head with the empty line at its end. The body stands behind it, unless it is apart or a
	// stream.
	bytes       []byte
	start, head int
	index       ResponseHead // of the head, if isIndexed
	removed     int          // lines of the index that are still in bytes
	isIndexed   bool
	body        bodyKind
	apart       []byte // the body, if it is apart
	stream      Stream // the body, if it is not nil
	trailer     []byte // see SetTrailer
	noLocation  bool   // see HasLocation

	isOwn bool   // the gateway's own answer is in bytes
	other []byte // memory for the other kind of answer
	spare []byte // memory for bodies apart
}

// bodyKind says where a body is kept that is no stream.
type bodyKind uint8

const (
	behindHead bodyKind = iota
	apart               // and its length has to be put into the head
	announced           // apart, and its length is in the head
)

// A Stream is the body of an answer that is still on its way. One goroutine at a time reads it; Interrupt may be called
// from any other.
type Stream interface {
	// Length returns the length of the body in bytes, -1 if it is not known.
	Length() int64
	// Ready reports whether a Read would find something without waiting.
	Ready() bool
	// Wait waits until a Read would find something, and takes no memory meanwhile.
	Wait() error
	// ReadReady reads bytes that have arrived already; if there are none it returns 0 and no error.
	ReadReady(p []byte) (int, error)
	// Interrupt makes the Read in progress and those to come return.
	Interrupt()
	// Trailers returns the fields that came behind the body, once a read has returned io.EOF; nil if
	// there are none, or the protocol forwards none.
	Trailers() []Header
	// ReadCloser's Read waits for bytes and reads what has arrived.
	io.ReadCloser
}

// Status returns the status code; 0 if there is no answer.
func (r *Response) Status() int { return r.status }

// Head returns the head, the empty line included.
func (r *Response) Head() []byte {
	r.compact()
	return r.bytes[r.start:r.head]
}

// Body returns the body if it is no stream.
func (r *Response) Body() []byte {
	switch {
	case r.stream != nil:
		return nil
	case r.body != behindHead:
		return r.apart
	}
	return r.bytes[r.head:]
}

// IsOwn reports whether the answer is the gateway's own, and no backend's.
func (r *Response) IsOwn() bool { return r.isOwn }

// Stream returns the body if it is still on its way, or nil.
func (r *Response) Stream() Stream { return r.stream }

// IsStream reports whether the body is still on its way.
func (r *Response) IsStream() bool { return r.stream != nil }

// Size returns the number of bytes of the answer that are in memory.
func (r *Response) Size() int { return len(r.bytes) + len(r.apart) }

// Close ends the stream, if there is one.
func (r *Response) Close() {
	if r.stream != nil {
		_ = r.stream.Close() // nothing of it is read any more
		r.stream = nil
	}
}

// Reset forgets the answer, and memory beyond so many bytes.
func (r *Response) Reset(kept int) {
	r.Close()
	r.forget()
	r.bytes, r.other, r.spare = within(r.bytes, kept), within(r.other, kept), within(r.spare, kept)
}

// within returns memory, or nil if it is larger.
func within(memory []byte, most int) []byte {
	if cap(memory) > most {
		return nil
	}
	return memory
}

// forget forgets the answer and keeps its memory.
func (r *Response) forget() {
	r.status, r.start, r.head, r.bytes = 0, 0, 0, r.bytes[:0]
	r.isIndexed, r.removed, r.body, r.apart, r.stream, r.trailer, r.noLocation = false, 0, behindHead, nil, nil, nil,
		false
}

// Discard forgets the answer. If its body is a stream, the backend's connection ends with it.
func (r *Response) Discard() {
	r.Close()
	r.forget()
}

// begin forgets the answer for another one. An answer of the gateway leaves the bytes of the backend's, which documents
// may point into.
func (r *Response) begin(status int, isOwn bool) {
	r.Discard()
	if r.isOwn != isOwn {
		r.isOwn, r.bytes, r.other = isOwn, r.other[:0], r.bytes
	}
	r.status = status
}

// Start makes the response an answer of the gateway, with a Date and without a body. An answer that was there is
// discarded, but its bytes stay until the next one is received.
func (r *Response) Start(status int) {
	r.begin(status, true)
	r.body = apart
	b := strconv.AppendInt(append(r.bytes, "HTTP/1.1 "...), int64(status), 10)
	b = append(append(append(b, ' '), http.StatusText(status)...), "\r\nDate: "...)
	r.bytes = append(time.Now().UTC().AppendFormat(b, http.TimeFormat), "\r\n\r\n"...)
	r.head = len(r.bytes)
}

// StartBody is Start with a body of a media type. If that is empty, no header says it.
func (r *Response) StartBody(status int, contentType string, body []byte) {
	r.Start(status)
	r.body, r.apart = announced, body
	var room [96]byte
	lines := room[:0]
	if contentType != "" {
		lines = append(append(append(lines, "Content-Type: "...), contentType...), "\r\n"...)
	}
	r.AddLines(string(appendLength(lines, len(body))))
}

// appendLength appends a line with the length of a body.
func appendLength(dst []byte, length int) []byte {
	dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(length), 10)
	return append(dst, "\r\n"...)
}

// Receive makes the response an answer of a backend with this head, the empty line included.
func (r *Response) Receive(status int, head []byte) {
	r.begin(status, false)
	r.bytes = append(r.bytes, head...)
	r.bytes[len("HTTP/1.")] = '1'
	r.head = len(r.bytes)
}

// ReceiveParsed makes the response an answer of a backend whose head was parsed. Lines that end here are left out of
// it.
func (r *Response) ReceiveParsed(a *ResponseHead, head []byte) {
	r.Receive(a.Status, head[a.Compact(head):])
	r.noLocation = !a.HasLocation
}

// HasLocation reports whether the backend's answer may name a URL, in Location or Content-Location.
func (r *Response) HasLocation() bool { return !r.noLocation }

// Extend makes room for a body of n bytes behind the head.
func (r *Response) Extend(n int) []byte {
	r.bytes = slices.Grow(r.bytes[:r.head], n)[:r.head+n]
	return r.bytes[r.head:]
}

// Spare returns empty memory for a body that is given to SetBody then.
func (r *Response) Spare() []byte { return r.spare[:0] }

// SetStream makes the body one that is still on its way.
func (r *Response) SetStream(s Stream) { r.stream = s }

// SetTrailer keeps what a backend says of the fields that will come behind the body. It is true as long as the body is
// the backend's stream, and for a client who gets them.
func (r *Response) SetTrailer(value []byte) { r.trailer = bytes.Clone(value) }

// Trailer returns what SetTrailer was given.
func (r *Response) Trailer() []byte { return r.trailer }

// SetBody gives the answer another body, which it keeps. It returns memory that the caller may use instead.
func (r *Response) SetBody(body []byte) (memory []byte) {
	memory = r.spare[:0]
	r.spare = body
	r.SetBorrowedBody(body)
	return memory
}

// SetBorrowedBody is SetBody for a body whose memory is not used again.
func (r *Response) SetBorrowedBody(body []byte) {
	r.bytes, r.body, r.apart = r.bytes[:r.head], apart, body
}

// CopyFrom makes the response a copy of one whose body is no stream.
func (r *Response) CopyFrom(other *Response) {
	r.Receive(other.status, other.Head())
	r.spare = append(r.spare[:0], other.Body()...)
	r.SetBorrowedBody(r.spare)
}

// Detach moves the answer to a response of its own, which takes no more memory than the answer needs.
func (r *Response) Detach() *Response {
	d := &Response{status: r.status, bytes: slices.Clone(r.Head()), stream: r.stream, trailer: r.trailer}
	d.head = len(d.bytes)
	if r.stream == nil {
		d.SetBorrowedBody(slices.Clone(r.Body()))
	}
	r.forget()
	return d
}

// BecomeNotModified makes the answer a 304 without a body. The lines of its head stay.
func (r *Response) BecomeNotModified() {
	r.Close()
	r.compact()
	end := r.start + bytes.IndexByte(r.bytes[r.start:r.head], '\n') + 1
	r.bytes = slices.Replace(r.bytes[:r.head], r.start, end, []byte("HTTP/1.1 304 Not Modified\r\n")...)
	r.head = len(r.bytes)
	r.status, r.isIndexed, r.body, r.apart = http.StatusNotModified, false, behindHead, nil
}

// indexed returns the index of the head.
func (r *Response) indexed() *ResponseHead {
	if !r.isIndexed {
		_ = r.index.Parse(r.bytes[r.start:r.head]) // a head that came was good, and so is one that was made
		r.isIndexed = true
	}
	return &r.index
}

// Header returns the value of the first header line of that name, nil if there is none. It is valid until the answer is
// sent, or another one takes its place.
func (r *Response) Header(name string) []byte {
	for _, l := range r.indexed().headers {
		if !l.Dropped && equalFold(l.Name, []byte(name)) {
			return l.Value
		}
	}
	return nil
}

// IsJSON reports whether the body is JSON in UTF-8.
func (r *Response) IsJSON() bool {
	return ParseContentType(r.Header("Content-Type")).Is("application/json")
}

// Headers returns the values of all header lines of that name.
func (r *Response) Headers(name string) (values []string) {
	for _, l := range r.indexed().headers {
		if !l.Dropped && equalFold(l.Name, []byte(name)) {
			values = append(values, string(l.Value))
		}
	}
	return values
}

// Add adds a header line to the end of the head.
func (r *Response) Add(name, value string) { r.AddLines(name + ": " + value + "\r\n") }

// Set puts a header line in the place of all of that name.
func (r *Response) Set(name, value string) {
	r.Remove(name)
	r.Add(name, value)
}

// AddLines adds header lines, each with its CR LF, to the end of the head.
func (r *Response) AddLines(lines string) {
	at, end := r.head-len("\r\n"), len(r.bytes)
	r.bytes = append(r.bytes, lines...) // makes room; slices.Insert would need the lines as bytes
	copy(r.bytes[at+len(lines):], r.bytes[at:end])
	copy(r.bytes[at:], lines)
	r.head += len(lines)
	if r.isIndexed {
		r.index.extend(r.bytes[r.start:r.head], at-r.start)
	}
}

// Remove takes all header lines of these names out of the head.
func (r *Response) Remove(names ...string) {
	a := r.indexed()
	for _, name := range names {
		for i := range a.headers {
			if l := &a.headers[i]; !l.Dropped && equalFold(l.Name, []byte(name)) {
				l.Dropped = true
				r.removed++
			}
		}
	}
}

// compact takes the removed lines out of the bytes.
func (r *Response) compact() {
	if r.removed > 0 {
		r.start += r.index.Compact(r.bytes[r.start:r.head])
		r.isIndexed, r.removed = false, 0
	}
}

// joined is up to what size a body apart is copied behind the head: that costs less than to send the two apart.
const joined = 32 << 10

// Message completes an answer whose body is no stream for sending: with its length, if that is not in the head already,
// and with a line about the connection. It returns the bytes to be sent, one after the other.
func (r *Response) Message(headOnly bool, connection string) (first, rest []byte) {
	hasBody := !headOnly && r.status >= 200 && r.status != 204 && r.status != 304
	if r.body == apart && (hasBody || len(r.apart) > 0) {
		r.Remove("Content-Length")
		var room [64]byte
		r.AddLines(string(appendLength(room[:0], len(r.apart))))
		r.body = announced
	}
	if connection != "" {
		r.AddLines(connection)
	}
	r.compact()
	switch {
	case !hasBody:
		return r.bytes[r.start:r.head], nil
	case r.body == behindHead:
		return r.bytes[r.start:], nil
	case len(r.apart) <= joined:
		r.bytes = append(r.bytes[:r.head], r.apart...)
		return r.bytes[r.start:], nil
	}
	return r.bytes[r.start:r.head], r.apart
}

// StreamHead completes the head of an answer whose body is a stream for sending. If isEdited is set, the body that is
// sent is not as long as the one that comes.
func (r *Response) StreamHead(isEdited, isChunked bool, connection string) []byte {
	if isEdited && r.stream.Length() >= 0 {
		r.Remove("Content-Length")
	}
	if isChunked {
		r.AddLines("Transfer-Encoding: chunked\r\n")
	}
	if connection != "" {
		r.AddLines(connection)
	}
	return r.Head()
}

// DropSpare leaves the memory that Spare returned to its user.
func (r *Response) DropSpare() { r.spare = nil }
