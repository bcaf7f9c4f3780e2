package status

import (
	"encoding/json"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WithoutValue returns the message of a cause without the value that is wrong: 'must be a number' of 'Invalid value:
// "x": must be a number'. If there is only the value, or its end is not known, it returns a general message:
// 'Invalid value'.
func WithoutValue(c *metav1.StatusCause) string {
	kind := field.ErrorType(c.Type).String()
	rest, found := strings.CutPrefix(c.Message, kind)
	if !found {
		return c.Message // the words of an author, or of the gateway, which begin otherwise
	}
	rest, found = strings.CutPrefix(rest, ": ")
	if !found {
		return kind
	}
	if !showsValue(field.ErrorType(c.Type)) {
		return rest
	}
	if rest = afterValue(rest); rest == "" {
		return kind
	}
	return rest
}

// showsValue reports whether messages of a type have the value, if there is one.
func showsValue(t field.ErrorType) bool {
	switch t {
	case field.ErrorTypeRequired, field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooShort,
		field.ErrorTypeInternal:
		return false
	}
	return true
}

// afterValue returns what follows the value at the beginning of a text: all of it if no value is there. It is
// empty if nothing follows, or if the end of the value is not known.
func afterValue(text string) string {
	end := -1
	switch {
	case text == "":
		return ""
	case text[0] == '"':
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			end = len(quoted)
		}
	case strings.IndexByte("{[-0123456789", text[0]) >= 0, startsWithWord(text):
		d := json.NewDecoder(strings.NewReader(text))
		var value json.RawMessage
		if d.Decode(&value) == nil {
			end = int(d.InputOffset())
		}
	default:
		return text
	}
	if end < 0 {
		return ""
	}
	rest, _ := strings.CutPrefix(text[end:], ": ")
	if len(rest) == len(text[end:]) {
		return ""
	}
	return rest
}

// startsWithWord reports whether a text begins with a value that JSON writes as a word.
func startsWithWord(text string) bool {
	for _, word := range []string{"true", "false", "null"} {
		if rest, found := strings.CutPrefix(text, word); found && (rest == "" || strings.HasPrefix(rest, ":")) {
			return true
		}
	}
	return false
}
