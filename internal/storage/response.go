package storage

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
)

// The names of the headers that this package reads and writes.
const (
	headerETag            = "ETag"
	headerContentType     = "Content-Type"
	headerContentEncoding = "Content-Encoding"
	headerContentLength   = "Content-Length"
	headerRetryAfter      = "Retry-After"
	headerWarning         = "Warning"
)

// A Response is the answer to the client. It is an answer of the backend, unchanged or with other
// lines or another body, or one of the gateway.
type Response struct {
	message.Response

	edited  []byte // memory for bodies that the gateway makes
	encoded []byte // memory for bodies that are encoded
	edition edition
}

// An edition says how the gateway edits an answer of the backend.
type edition uint8

const (
	asItComes edition = iota
	plain             // the backend was asked not to encode it, because the gateway may edit it
	revised           // it is the answer to a read, and it is edited, or may be on its way
)

// Reset forgets the answer, and memory beyond so many bytes.
func (r *Response) Reset(kept int) {
	r.Response.Reset(kept)
	r.edited, r.encoded, r.edition = Kept(r.edited), Kept(r.encoded), asItComes
}

// ETag returns the backend's ETag.
func (r *Response) ETag() []byte { return r.Header(headerETag) }

// ContentType returns the media type of the body.
func (r *Response) ContentType() []byte { return r.Header(headerContentType) }

// ContentEncoding returns the coding of the body.
func (r *Response) ContentEncoding() []byte { return r.Header(headerContentEncoding) }

// StartJSON makes the answer one of the gateway with a JSON body, which it keeps, and with an ETag, unless that is
// empty. The ETag may be part of the answer that was there before.
func (r *Response) StartJSON(code int, etag, body []byte) {
	tag := string(etag)
	r.StartBody(code, JSON, body)
	if tag != "" {
		r.Add(headerETag, tag)
	}
}

// IsPlain reports whether the backend was asked not to encode the answer, or could not: the gateway edits it, or
// makes it.
func (r *Response) IsPlain() bool { return r.edition != asItComes || r.IsOwn() }

// IsRevised reports whether the answer to a read is edited, or may be on its way, so that its ETag names other bytes
// than the backend's.
func (r *Response) IsRevised() bool { return r.edition == revised && !r.IsOwn() }

// Revise notes that the answer to a read is edited, or may be on its way.
func (r *Response) Revise() { r.edition = revised }

// SetEncoded replaces the answer's body with its encoded form, unless encode reports false.
func (r *Response) SetEncoded(encode func(dst, body []byte) ([]byte, bool)) bool {
	encoded, isEncoded := encode(r.encoded[:0], r.Body())
	if r.encoded = encoded; isEncoded {
		r.Remove(exactBytes[:]...)
		r.SetBorrowedBody(encoded)
	}
	return isEncoded
}

// exactBytes are the headers of an answer that depend on the exact bytes of its body.
var exactBytes = [...]string{"Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "Accept-Ranges"}

// ForgetBody takes out of the head of an answer without a body, or with one that changes on its
// way, the headers that describe the bytes that the backend would have sent.
func (r *Response) ForgetBody(length bool) {
	r.Remove(exactBytes[:]...)
	if length {
		r.Remove(headerContentLength)
	}
}

// Answer makes an object the answer to the client. The answer is unchanged if the object has failed.
func (r *Response) Answer(code int, etag []byte, object *document.Document) error {
	if err := object.Err(); err != nil {
		return err
	}
	r.edited = object.AppendTo(r.edited[:0])
	r.StartJSON(code, etag, r.edited)
	return nil
}

// AnswerEdited gives the backend's answer an object for a body. The answer is unchanged if the object has failed.
func (r *Response) AnswerEdited(object *document.Document) error {
	if err := object.Err(); err != nil {
		return err
	}
	r.AnswerEditedBytes(object.AppendTo(r.edited[:0]))
	return nil
}

// EditBuffer returns empty memory for AnswerEditedBytes.
func (r *Response) EditBuffer() []byte { return r.edited[:0] }

// AnswerEditedBytes gives the backend's answer another body, and takes out the headers that depend
// on the bytes of the former one.
func (r *Response) AnswerEditedBytes(body []byte) {
	r.Remove(exactBytes[:]...)
	r.edited = r.SetBody(body)
}

// BecomeNotModified makes the answer a 304 with the head of the backend's answer, but for what describes a body.
func (r *Response) BecomeNotModified() {
	r.Remove(exactBytes[:]...)
	r.Remove(headerContentType, headerContentEncoding, headerContentLength, "Content-Language", "Content-Disposition")
	r.Response.BecomeNotModified()
}

// An Editor changes the body of an answer while it streams to the client.
type Editor interface {
	// HasEvents reports whether the body is a sequence of events. Each leaves when it is complete.
	HasEvents() bool
	// IsHolding reports whether a part of an object is held until the rest comes.
	IsHolding() bool
	// Rest gives back memory of a large object, at a time when none is held.
	Rest()
	// Append edits the start of src, appends the result to dst up to a length of about limit, and
	// returns how many bytes of src it used.
	Append(dst, src []byte, limit int) ([]byte, int, error)
	// Close ends the body.
	Close(dst []byte) ([]byte, error)
	// Failed returns the Status of a body that cannot be edited.
	Failed(err error) error
	// Release gives all memory back.
	Release()
}

// keptBytes is the size up to which a buffer is kept for the next request.
const keptBytes = 64 << 10

// Kept empties a buffer for the next request, or drops one that is too large to be kept.
func Kept(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}
