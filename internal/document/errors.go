package document

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/quote"
)

// ErrorCode classifies why a text was refused.
type ErrorCode uint8

// The reasons for which Parse refuses a text.
const (
	Syntax       ErrorCode = iota // not JSON as RFC 8259 defines it
	Encoding                      // invalid UTF-8, a byte order mark, lone surrogates, NUL in a key
	Duplicate                     // a key that stands twice in one object
	Range                         // a number that a double cannot hold
	TooLarge                      // more bytes than Limits.Bytes
	TooDeep                       // nested deeper than Limits.Depth
	TooManyNodes                  // more values than Limits.Nodes
	NoMemory                      // Limits.Memory refused what the document takes
)

// Error says where and why a text was refused.
type Error struct {
	Offset int       // of the offending byte, from 0
	Path   string    // of the offending value, as Document.Path writes it; "" is the root
	Code   ErrorCode // for those who answer differently to different reasons
	Msg    string    // what must be otherwise, without place
}

// Error writes path, message and offset.
func (e *Error) Error() string {
	s := e.Msg + " at offset " + strconv.Itoa(e.Offset)
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	return s
}

func isNoMemory(err error) bool {
	failure, is := errors.AsType[*Error](err)
	return is && failure.Code == NoMemory
}

const msgKeyNUL = `keys must not contain '\u0000'`

func msgTooLarge(limit int) string {
	return "document must be less than or equal to " + strconv.Itoa(limit) + " bytes long"
}

func msgTooDeep(limit int) string {
	return "depth of nesting must be less than or equal to " + strconv.Itoa(limit)
}

func msgTooMany(limit int) string {
	return "number of values must be less than or equal to " + strconv.Itoa(limit)
}

// unexpected describes the byte at i if something else is required.
func unexpected(src []byte, i int, required string) string {
	if i >= len(src) {
		return "unexpected end of the document, " + required + " must stand here"
	}
	r, _ := utf8.DecodeRune(src[i:])
	return "unexpected character " + quoteRune(r) + ", " + required + " must stand here"
}

func quoteRune(r rune) string {
	if r == '\'' {
		return `'''`
	}
	return strconv.QuoteRune(r)
}

// abbreviate bounds what a message repeats of the input.
func abbreviate(s string) string { return quote.Clip(s, quote.MaxToken) }
