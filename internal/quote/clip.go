// Package quote repeats what others say: it shortens texts for messages, and
// writes them as JSON strings.
package quote

import "unicode/utf8"

// How much messages repeat of what a client or a backend says, in bytes. An answer
// and a line in the log stay small, however long that is.
const (
	// MaxToken is for words in the middle of a sentence: keys and operations of
	// texts that cannot be read.
	MaxToken = 64
	// MaxSegment is for parts of a request's path.
	MaxSegment = 80
	// MaxHost is for names of hosts.
	MaxHost = 100
	// MaxScalar is for values that break a convention.
	MaxScalar = 128
	// MaxName is for names and values in errors about merges: the longest name that
	// Kubernetes knows.
	MaxName = 253
	// MaxValue is for names and values that a schema or a rule refuses.
	MaxValue = 512
	// MaxCause is for the value of one cause of an answer, and MaxDetail for what is
	// said about it.
	MaxCause  = 1024
	MaxDetail = 5 * 1024
)

// Clip shortens s to at most limit bytes, on a rune boundary, and shows by '…' that
// it did.
func Clip(s string, limit int) string { return clip(s, limit, "…") }

// ClipDots is Clip with '...' instead of '…'.
func ClipDots(s string, limit int) string { return clip(s, limit, "...") }

func clip(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + mark
}
