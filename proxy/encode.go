package proxy

import (
	"bytes"
	"net/http"

	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/policies"
)

// leastEncoded is from which length in bytes on a body is encoded: a shorter one fits a packet anyway.
const leastEncoded = 1 << 10

// encodeAnswer encodes an answer that the gateway edits, if the client asks for that: for the edit the backend was
// asked not to. The ETag then names the bytes that the client gets.
func encodeAnswer(h *handler) {
	coding := compress.Identity
	if mayEncode(&h.request.Response) {
		coding = codingOf(h)
	}
	if isVariant(&h.request.Response, coding) {
		markAnswer(h, coding)
	}
}

// codingOf encodes an answer, and returns its coding.
func codingOf(h *handler) compress.Coding {
	r := &h.request.Response
	if h.upgrade.tunnel != nil || len(r.ContentEncoding()) > 0 || isFixed(r) {
		return compress.Identity
	}
	if r.Status() == http.StatusNotModified {
		addVary(r)
		return compress.Identity
	}
	isStream := r.IsStream()
	if r.Status() >= 300 || isStream && h.request.Editor == nil {
		return compress.Identity
	}
	addVary(r)
	offered := compress.ForBodies
	if isStream {
		offered = compress.ForStreams
	}
	coding := compress.Negotiate(&h.incoming.Head, offered)
	if coding == compress.Identity || h.request.IsHead() {
		return compress.Identity
	}
	if isStream && encodeStream(h, coding) || !isStream && encodeBody(h, coding) {
		r.Add("Content-Encoding", coding.String())
		return coding
	}
	return compress.Identity
}

// encodeBody encodes a body in memory. It reports false if there is no memory for that, or no use in it.
func encodeBody(h *handler, coding compress.Coding) bool {
	r := &h.request.Response
	size := len(r.Body())
	if !hasRoom(h) || !growAnswer(h, size) {
		return false
	}
	return r.SetEncoded(func(dst, body []byte) ([]byte, bool) { return compress.Append(dst, body, coding) })
}

// encodeStream encodes a body on its way. It reports false if there is no memory for that.
func encodeStream(h *handler, coding compress.Coding) bool {
	if !hasRoom(h) || !growAnswer(h, compress.StreamMemory) {
		return false
	}
	share := &h.incoming.Memory // which the stream may need longer than the handler is there
	h.request.Editor = compress.NewEditor(h.request.Editor, coding, func() { share.Shrink(compress.StreamMemory) })
	return true
}

// hasRoom reports whether most of the memory for requests is free. Clients that ask for encoded answers take no memory
// that others need to be served at all.
func hasRoom(h *handler) bool { return h.gateway.memory.InUse() <= h.gateway.memory.Limit()/4 }

// growAnswer asks for memory for the answer. An answer is sent without it, too.
func growAnswer(h *handler, bytes int) bool {
	share := &h.incoming.Memory
	if !share.Committed() {
		share.Commit()
		defer share.Reopen()
	}
	return share.Grow(bytes)
}

// isFixed reports whether the backend forbids to encode its answer (RFC 9111, 5.2.2.6).
func isFixed(r *storage.Response) bool {
	return bytes.Contains(r.Header("Cache-Control"), []byte("no-transform"))
}

// markAnswer makes of the backend's ETag the one of the bytes that the client gets, or has already.
func markAnswer(h *handler, coding compress.Coding) {
	r, v := &h.request.Response, compress.Variant{Coding: coding}
	switch {
	case r.IsRevised():
		v.Revision = revisionOf(h.set)
	case r.Status() == http.StatusNotModified && r.IsPlain():
		v = h.named
	}
	if v == (compress.Variant{}) {
		return
	}
	etag := r.ETag()
	if marked := compress.Mark(etag, v); len(marked) > len(etag) {
		r.Set("ETag", string(marked))
	}
}

// addVary says that the answer depends on which codings a client takes, unless it says so already.
func addVary(r *storage.Response) {
	for _, value := range r.Headers("Vary") {
		for name := range bytes.SplitSeq([]byte(value), []byte(",")) {
			if name = bytes.TrimSpace(name); string(name) == "*" || bytes.EqualFold(name, []byte("Accept-Encoding")) {
				return
			}
		}
	}
	r.AddLines("Vary: Accept-Encoding\r\n")
}

// mayEncode reports whether the gateway edits the answer, and either it is worth encoding, or it
// says that the client has it already.
func mayEncode(r *storage.Response) bool {
	return r.IsPlain() && (r.IsStream() || r.Status() == http.StatusNotModified || len(r.Body()) >= leastEncoded)
}

// isVariant reports whether the client gets, or has, other bytes than the backend's ETag names.
func isVariant(r *storage.Response, coding compress.Coding) bool {
	return coding != compress.Identity || r.IsRevised() || r.Status() == http.StatusNotModified && r.IsPlain()
}

// revisionOf names the policy files, which decide how answers are edited.
func revisionOf(set *policies.Set) string {
	hash := set.Hash()
	return hash[:min(len(hash), compress.RevisionLength)]
}
