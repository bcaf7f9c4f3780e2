package builtin

import "strings"

// tokenBytes is what a word of a module takes, parsed, written as JSON, and parsed again. It may be
// in as many expressions as there are.
const tokenBytes = 10 << 10

// parsedModule is a module of a text.
func parsedModule(o operands) need {
	text, words := o.text(1), int64(1)
	longest := int64(0)
	for line := range strings.SplitSeq(text, "\n") {
		longest = max(longest, int64(len(line)))
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c <= ' ':
			i++
		case isWord(c) && c != '-' && c != '/':
			words++
			for i < len(text) && isWord(text[i]) && text[i] != '-' && text[i] != '/' {
				i++
			}
		default:
			words++
			i++
		}
	}
	errors := multiply(words, multiply(8, longest)) // each quotes its line
	return need{memory: add(64<<10+64*o.len(0), add(multiply(tokenBytes, words), add(errors, multiply(512, o.len(1)))))}
}
