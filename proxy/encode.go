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
func encodeAnswer(r *request) {
	coding := compress.Identity
	if mayEncode(&r.Response) {
		coding = codingOf(r)
	}
	if isVariant(&r.Response, coding) {
		markAnswer(r, coding)
	}
}

// codingOf encodes an answer, and returns its coding.
func codingOf(r *request) compress.Coding {
	answer := &r.Response
	if r.upgrade.tunnel != nil || len(answer.ContentEncoding()) > 0 || isFixed(answer) {
		return compress.Identity
	}
	if answer.Status() == http.StatusNotModified {
		addVary(answer)
		return compress.Identity
	}
	isStream := answer.IsStream()
	if answer.Status() >= 300 || isStream && r.Editor == nil {
		return compress.Identity
	}
	addVary(answer)
	offered := compress.ForBodies
	if isStream {
		offered = compress.ForStreams
	}
	coding := compress.Negotiate(&r.incoming.Head, offered)
	if coding == compress.Identity || r.IsHead() {
		return compress.Identity
	}
	if isStream && encodeStream(r, coding) || !isStream && encodeBody(r, coding) {
		answer.Add("Content-Encoding", coding.String())
		return coding
	}
	return compress.Identity
}

// encodeBody encodes a body in memory. It reports false if there is no memory for that, or no use in it.
func encodeBody(r *request, coding compress.Coding) bool {
	answer := &r.Response
	size := len(answer.Body())
	if !hasRoom(r) || !growAnswer(r, size) {
		return false
	}
	return answer.SetEncoded(func(dst, body []byte) ([]byte, bool) { return compress.Append(dst, body, coding) })
}

// encodeStream encodes a body on its way. It reports false if there is no memory for that.
func encodeStream(r *request, coding compress.Coding) bool {
	if !hasRoom(r) || !growAnswer(r, compress.StreamMemory) {
		return false
	}
	share := &r.incoming.Memory // which the stream may need longer than the request is served
	r.Editor = compress.NewEditor(r.Editor, coding, func() { share.Shrink(compress.StreamMemory) })
	return true
}

// hasRoom reports whether most of the memory for requests is free. Clients that ask for encoded answers take no memory
// that others need to be served at all.
func hasRoom(r *request) bool { return r.gateway.memory.InUse() <= r.gateway.memory.Limit()/4 }

// growAnswer asks for memory for the answer. An answer is sent without it, too.
func growAnswer(r *request, bytes int) bool {
	share := &r.incoming.Memory
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
func markAnswer(r *request, coding compress.Coding) {
	answer, v := &r.Response, compress.Variant{Coding: coding}
	switch {
	case answer.IsRevised():
		v.Revision = revisionOf(r.set)
	case answer.Status() == http.StatusNotModified && answer.IsPlain():
		v = r.named
	}
	if v == (compress.Variant{}) {
		return
	}
	etag := answer.ETag()
	if marked := compress.Mark(etag, v); len(marked) > len(etag) {
		answer.Set("ETag", string(marked))
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
