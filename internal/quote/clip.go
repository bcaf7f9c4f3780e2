// Package quote has parts of messages: texts of others, which it shortens and writes as JSON strings,
// lists of names, and numbers of things.
package quote

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

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

// Cut is Clip without a mark.
func Cut(s string, limit int) string { return clip(s, limit, "") }

func clip(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + mark
}

// Names lists names in quotation marks: 'a', 'b'.
func Names(names []string) string { return "'" + strings.Join(names, "', '") + "'" }

// Count says how many things there are: 1 request, 2 requests. n is an integer.
func Count(n any, thing string) string {
	if number := fmt.Sprint(n); number != "1" {
		return number + " " + thing + "s"
	}
	return "1 " + thing
}
