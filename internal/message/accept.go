package message

import (
	"bytes"
	"slices"
	"strconv"
)

// Accepts reports whether the client's Accept headers name one of the media types or ranges, and do not exclude it. An
// empty header names nothing, or everything if isAny says so.
func (h *Head) Accepts(isAny bool, mediaTypes ...string) bool {
	for i := range h.headers {
		if l := &h.headers[i]; l.Field == FieldAccept && !l.Dropped &&
			(isAny && len(trim(l.Value)) == 0 || allowsOne(l.Value, mediaTypes)) {
			return true
		}
	}
	return false
}

// allowsOne reports whether an Accept header lists one of the media types, and does not exclude it.
func allowsOne(accept []byte, mediaTypes []string) bool {
	for one := range bytes.SplitSeq(accept, []byte(",")) {
		media, parameters, _ := bytes.Cut(one, []byte(";"))
		if slices.Contains(mediaTypes, string(bytes.ToLower(bytes.TrimSpace(media)))) && !isExcluded(parameters) {
			return true
		}
	}
	return false
}

// isExcluded reports whether parameters of a media type have a weight of zero.
func isExcluded(parameters []byte) bool {
	for one := range bytes.SplitSeq(parameters, []byte(";")) {
		key, value, _ := bytes.Cut(one, []byte("="))
		if bytes.EqualFold(bytes.TrimSpace(key), []byte("q")) {
			weight, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
			return err == nil && weight == 0
		}
	}
	return false
}
