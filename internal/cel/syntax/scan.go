package syntax

import (
	"strings"
	"unicode/utf8"
)

// A kind is what a token is. A character that is a token is its own kind.
type kind uint8

const (
	end kind = iota
	identifier
	quotedIdentifier // in backticks
	integer
	unsigned
	double
	text // with quotes

	and
	or
	equal
	notEqual
	atMost
	atLeast
	in
	isTrue
	isFalse
	null
)

// A token is a part of an expression.
type token struct {
	kind       kind
	begin, end int32 // in bytes
	at         int32 // in characters, as cel-go counts places
}

// wordKind is the kind of an identifier: some are tokens of their own.
func wordKind(word string) kind {
	switch word {
	case "in":
		return in
	case "true":
		return isTrue
	case "false":
		return isFalse
	case "null":
		return null
	}
	return identifier
}

// A scanner cuts an expression into tokens. Each is as long as it can be, as in cel-go's grammar.
type scanner struct {
	text    string
	pos     int
	further int // bytes before pos that begin no character
	tokens  []token
}

// scan returns the tokens, the last of which is the end; false if there is something else.
func scan(expression string, tokens []token) ([]token, bool) {
	s := scanner{text: expression, tokens: tokens[:0]}
	for {
		if !s.skip() {
			return s.tokens, false
		}
		if s.pos == len(s.text) {
			s.add(end, 0)
			return s.tokens, true
		}
		if !s.next() {
			return s.tokens, false
		}
	}
}

// add adds a token of so many bytes.
func (s *scanner) add(k kind, length int) {
	s.tokens = append(s.tokens, token{k, int32(s.pos), int32(s.pos + length), int32(s.pos - s.further)})
	s.pos += length
}

// skip skips blanks and comments.
func (s *scanner) skip() bool {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\r', '\n', '\f':
			s.pos++
		case '/':
			if s.peek(1) != '/' {
				return true
			}
			for s.pos < len(s.text) && s.text[s.pos] != '\n' {
				if !s.character() {
					return false
				}
			}
		default:
			return true
		}
	}
	return true
}

// character goes on by one character.
func (s *scanner) character() bool {
	if s.text[s.pos] < utf8.RuneSelf {
		s.pos++
		return true
	}
	r, size := utf8.DecodeRuneInString(s.text[s.pos:])
	s.pos += size
	s.further += size - 1
	return r != utf8.RuneError
}

// peek is the byte so far ahead; 0 beyond the end.
func (s *scanner) peek(ahead int) byte {
	if s.pos+ahead < len(s.text) {
		return s.text[s.pos+ahead]
	}
	return 0
}

// next adds the next token.
func (s *scanner) next() bool {
	c := s.text[s.pos]
	switch {
	case isLetter(c):
		return s.word()
	case isDigit(c), c == '.' && isDigit(s.peek(1)):
		s.number()
		return true
	}
	switch c {
	case '"', '\'':
		return s.string(0)
	case '`':
		return s.quoted()
	case '&':
		return s.pair('&', and)
	case '|':
		return s.pair('|', or)
	case '=':
		return s.pair('=', equal)
	case '!':
		if s.pair('=', notEqual) {
			return true
		}
	case '<':
		if s.pair('=', atMost) {
			return true
		}
	case '>':
		if s.pair('=', atLeast) {
			return true
		}
	case '[', ']', '{', '}', '(', ')', '.', ',', '-', '?', ':', '+', '*', '/', '%':
	default:
		return false
	}
	s.add(kind(c), 1)
	return true
}

// pair adds a token of two characters, if the second one is there, and reports whether it is.
func (s *scanner) pair(second byte, k kind) bool {
	if s.peek(1) != second {
		return false
	}
	s.add(k, 2)
	return true
}

// word adds an identifier, or a string after the letter of one.
func (s *scanner) word() bool {
	length := 1
	for isLetter(s.peek(length)) || isDigit(s.peek(length)) {
		length++
	}
	word := s.text[s.pos : s.pos+length]
	if c := s.peek(length); c == '"' || c == '\'' {
		switch word {
		case "r", "R":
			return s.string(length)
		case "b", "B", "br", "bR", "Br", "BR":
			return false
		}
	}
	s.add(wordKind(word), length)
	return true
}

// number adds a number.
func (s *scanner) number() {
	length := s.digits(0)
	k := integer
	if length == 1 && s.text[s.pos] == '0' && s.peek(1) == 'x' && isHexDigit(s.peek(2)) {
		for length = 3; isHexDigit(s.peek(length)); length++ {
		}
	} else {
		if s.peek(length) == '.' && isDigit(s.peek(length+1)) {
			k, length = double, s.digits(length+1)
		}
		if c := s.peek(length); c == 'e' || c == 'E' {
			at := length + 1
			if sign := s.peek(at); sign == '+' || sign == '-' {
				at++
			}
			if isDigit(s.peek(at)) {
				k, length = double, s.digits(at)
			}
		}
	}
	if c := s.peek(length); k == integer && (c == 'u' || c == 'U') {
		k = unsigned
		length++
	}
	s.add(k, length)
}

// digits returns the offset at which the digits end that begin so far ahead.
func (s *scanner) digits(ahead int) int {
	for isDigit(s.peek(ahead)) {
		ahead++
	}
	return ahead
}

// string adds a string, whose quote is so far ahead: a raw one has a letter before it. It declines escapes of more than one
// letter, and breaks of lines that cel-go changes.
func (s *scanner) string(ahead int) bool {
	begin, at := s.pos, int32(s.pos-s.further)
	isRaw, quote := ahead > 0, s.text[s.pos+ahead:s.pos+ahead+1]
	s.pos += ahead + 1
	isLong := s.peek(0) == quote[0] && s.peek(1) == quote[0]
	if isLong {
		s.pos += 2
		quote = s.text[s.pos-3 : s.pos]
	}
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case strings.HasPrefix(s.text[s.pos:], quote):
			s.pos += len(quote)
			s.tokens = append(s.tokens, token{text, int32(begin), int32(s.pos), at})
			return true
		case c == '\n' && !isLong || c == '\r':
			return false
		case c == '\\' && !isRaw:
			if unescaped(s.peek(1)) == 0 {
				return false
			}
			s.pos += 2
		case !s.character():
			return false
		}
	}
	return false
}

// quoted adds an identifier in backticks.
func (s *scanner) quoted() bool {
	length := 1
	for c := s.peek(length); isLetter(c) || isDigit(c) || c == '.' || c == '-' || c == '/' || c == ' '; c = s.peek(length) {
		length++
	}
	if length == 1 || s.peek(length) != '`' {
		return false
	}
	s.add(quotedIdentifier, length+1)
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// unescaped returns the character that a letter after a backslash stands for; 0 if it is no escape of one letter.
func unescaped(c byte) byte {
	switch c {
	case 'a':
		return '\a'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	case '\\', '\'', '"', '`', '?':
		return c
	}
	return 0
}
