package cel

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// foreign are the variables that show other objects than the request's: what they hold may get into
// a message only if its author put it there (ERR-7).
const foreign = plan.Uses(1<<value.Params | 1<<value.NamespaceObject | plan.UsesState)

// foreignIn reports whether an expression can return values of other objects, itself or through
// variables.
func foreignIn(u plan.Uses, variables *Variables) bool {
	if u&foreign != 0 {
		return true
	}
	if u&plan.UsesVariables == 0 || variables == nil {
		return false
	}
	for _, p := range variables.programs {
		if p.foreign {
			return true
		}
	}
	return false
}

// msgUnknownState is how errors of [States] begin.
const msgUnknownState = "the state '"

const msgRedacted = "what went wrong may not be told here, since it may show values of other objects"

// detail says what went wrong, in words that hold no value of another object and nothing that only the program knows.
func (p *Program) detail(text string) string {
	if text = worded(text); !p.foreign {
		return text
	}
	return redacted(text, p.source)
}

// plainFailures are the failures that cel-go words without any value.
var plainFailures = []string{"no such overload", "division by zero", "modulus by zero", "integer overflow",
	"unsigned integer overflow",
	"duration overflow", "timestamp overflow", "optional.none() dereference", "NaN values cannot be ordered",
	"a variable refers to itself"}

func redacted(text, source string) string {
	const composited, fails = "composited variable ", " fails to evaluate: "
	if rest, ok := strings.CutPrefix(text, composited); ok {
		if name, why, ok := strings.Cut(rest, fails); ok {
			return composited + name + fails + why // which its own program has made fit to be shown
		}
	}
	if strings.HasPrefix(text, msgUnknownState) || strings.HasPrefix(text, "type conversion error from '") { // of types
		return text
	}
	if key, ok := strings.CutPrefix(text, "no such key: "); ok {
		if names(source, key) {
			return text
		}
		return "no such key"
	}
	for _, known := range plainFailures {
		if strings.HasPrefix(text, known) {
			return known
		}
	}
	if strings.Contains(text, "out of range in list size") || strings.HasPrefix(text, "index out of bounds") {
		return "index out of range"
	}
	return msgRedacted
}

// names reports whether the expression has the word in it.
func names(source, word string) bool {
	for from := 0; ; {
		i := strings.Index(source[from:], word)
		if i < 0 || word == "" {
			return false
		}
		i += from
		end := i + len(word)
		if (i == 0 || !wordByte(source[i-1])) && (end == len(source) || !wordByte(source[end])) {
			return true
		}
		from = end
	}
}

func wordByte(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}
