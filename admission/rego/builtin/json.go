package builtin

import (
	"encoding/base64"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A shape is what a text in JSON makes, found without making it. The text need not be valid: a
// parser makes no more of one that ends early.
type shape struct {
	bytes, values int64
	depth, most   int
	inText        bool
	escaped       bool
	number        []byte // the one that is being read; its first digits
	long          int
	err           error // about a number
}

// Write implements io.Writer.
func (s *shape) Write(text []byte) (int, error) {
	s.bytes += int64(len(text))
	for _, c := range text {
		s.next(c)
	}
	return len(text), nil
}

func (s *shape) next(c byte) {
	if s.inText {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.inText = false
		}
		return
	}
	if isNumeric(c) {
		if s.long++; s.long <= MaxDigits+1 {
			s.number = append(s.number, c)
		}
		return
	}
	s.endNumber()
	switch c {
	case '"':
		s.inText = true
	case '[', '{':
		s.values++
		s.depth++
		s.most = max(s.most, s.depth)
	case ']', '}':
		s.depth--
	case ',', ':':
		s.values++
	}
}

func (s *shape) endNumber() {
	if s.long > 0 && s.err == nil {
		s.err = CheckNumber(string(s.number))
	}
	s.number, s.long = s.number[:0], 0
}

// shapeOf returns the shape of a text.
func shapeOf(text string) shape {
	var s shape
	s.bytes = int64(len(text))
	for i := range len(text) {
		s.next(text[i])
	}
	s.endNumber()
	s.values++
	return s
}

// maxParsed is how deep a text is nested that package encoding/json reads.
const maxParsed = 10_000

// need returns what the values take that OPA makes of the text.
func (s *shape) need() need {
	return need{memory: parsedBytes*s.values + 12*s.bytes + frameBytes*int64(min(s.most, maxParsed+1)),
		steps: s.bytes / 4}
}

// parsedJSON is a value that is made of a text in JSON. The stack that a deep one takes stays.
func parsedJSON(o operands) need {
	s := shapeOf(o.text(0))
	n := s.need()
	if s.most > 64 {
		n.steps += frameBytes * int64(min(s.most, maxParsed+1)) / 4
	}
	return n
}

// scannedJSON is a text in JSON that is read and not kept.
func scannedJSON(o operands) need {
	s := shapeOf(o.text(0))
	return need{memory: 1024 + 16*int64(min(s.most, maxParsed+1)), steps: s.bytes / 4}
}

// numbersInJSON returns the error about a number in a text in JSON.
func numbersInJSON(o operands) error {
	s := shapeOf(o.text(0))
	return s.err
}

// oneNumber returns the error about a text that is a number.
func oneNumber(o operands) error { return CheckNumber(o.text(0)) }

// written is the text of a value: each letter may be written as six, and the buffers double.
func written(o operands) need {
	return need{memory: add(1024, multiply(24, o.deep(0)))}
}

// indented is written with what the options put before each line.
func indented(o operands) need {
	indent := int64(2)
	if options, ok := o.of[1].Value.(ast.Object); ok {
		for _, name := range []string{"prefix", "indent"} {
			if v := options.Get(ast.StringTerm(name)); v != nil {
				indent += length(v)
			}
		}
	}
	size := o.deep(0)
	if size > o.left {
		return need{memory: size}
	}
	lines := nodesOf(o.of[0].Value, o.left) * 2
	depth := int64(depthOf(o.of[0].Value, maxParsed))
	return need{memory: add(1024+multiply(24, size), multiply(4, multiply(indent, multiply(lines, depth))))}
}

// decodedToken is what the parts of a token are decoded to. A token may be within another one.
func decodedToken(o operands) need {
	n, _ := tokenOf(o.text(0))
	return n
}

// numbersInToken returns the error about a number in a token.
func numbersInToken(o operands) error {
	_, err := tokenOf(o.text(0))
	return err
}

func tokenOf(text string) (sum need, err error) {
	sum.memory = 1024 + 32*int64(strings.Count(text, "."))
	for {
		parts := strings.SplitN(text, ".", 4)
		if len(parts) != 3 {
			sum.memory += 4 * int64(len(text))
			return sum, err
		}
		next := ""
		for i, part := range parts {
			sum.memory += 8 * int64(len(part))
			if i == 2 {
				continue
			}
			plain, wrong := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
			if wrong != nil {
				continue
			}
			var s shape
			_, _ = s.Write(plain)
			s.endNumber()
			s.values++
			n := s.need()
			sum.memory, sum.steps = add(sum.memory, n.memory), add(sum.steps, n.steps)
			next = strings.Trim(string(plain), `"'`)
			if err == nil && !strings.Contains(next, ".") || err == nil && strings.HasPrefix(next, "{") {
				err = s.err
			}
		}
		text = next
	}
}
