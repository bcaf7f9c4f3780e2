package graph

import (
	"errors"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The white space of ECMA-262, as the inside of a class: RE2's \s has only ASCII.
const (
	ecmaSpace   = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaNoSpace = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
)

// fromECMA spells an expression of ECMA-262 as RE2 does, where the two write the same in different
// ways. What RE2 lacks is left as it is, and found when it is compiled.
func fromECMA(text string) string {
	if !strings.ContainsAny(text, `\.[`) {
		return text
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i += escape(&b, text[i:], inClass)
			continue
		case c == '[' && inClass:
			b.WriteString(`\[`) // RE2 would look for a class with a name
		case c == '[':
			inClass = true
			switch {
			case strings.HasPrefix(text[i:], "[]"):
				b.WriteString(`[^\x00-\x{10ffff}]`)
				inClass, i = false, i+1
			case strings.HasPrefix(text[i:], "[^]"):
				b.WriteString(`[\x00-\x{10ffff}]`)
				inClass, i = false, i+2
			default:
				b.WriteByte(c)
			}
		case c == ']':
			inClass = false
			b.WriteByte(c)
		case c == '.' && !inClass:
			b.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		default:
			b.WriteByte(c)
		}
		i++
	}
	return b.String()
}

// escape writes the escape that a text begins with, and returns its length.
func escape(b *strings.Builder, text string, inClass bool) int {
	open, end := "[", "]"
	if inClass {
		open, end = "", ""
	}
	switch c := text[1]; {
	case c == 's':
		b.WriteString(open + ecmaSpace + end)
	case c == 'S':
		b.WriteString(open + ecmaNoSpace + end)
	case c == 'u' && len(text) > 3 && text[2] == '{':
		if end := strings.IndexByte(text, '}'); end > 0 {
			b.WriteString(`\x` + text[2:end+1])
			return end + 1
		}
		b.WriteString(text[:2])
	case c == 'u' && len(text) >= 6:
		high, err := strconv.ParseUint(text[2:6], 16, 16)
		if err != nil {
			b.WriteString(text[:2])
			return 2
		}
		if utf16.IsSurrogate(rune(high)) && len(text) >= 12 && text[6:8] == `\u` {
			if low, err := strconv.ParseUint(text[8:12], 16, 16); err == nil {
				if r := utf16.DecodeRune(rune(high), rune(low)); r != '\uFFFD' {
					b.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
					return 12
				}
			}
		}
		b.WriteString(`\x{` + text[2:6] + `}`)
		return 6
	case c == 'c' && len(text) > 2 && (text[2]|0x20)-'a' < 26:
		b.WriteString(`\x{` + strconv.FormatInt(int64(text[2]&0x1f), 16) + `}`)
		return 3
	case c == '0' && (len(text) == 2 || text[2] < '0' || text[2] > '9'):
		b.WriteString(`\x00`)
	case c == 'b' && inClass:
		b.WriteString(`\x08`)
	default:
		b.WriteString(text[:2])
	}
	return 2
}

// IsMistaken reports whether an expression that RE2 refuses is not valid in ECMA-262 either.
func IsMistaken(err error) bool {
	of, isSyntax := errors.AsType[*syntax.Error](err)
	if !isSyntax {
		return false
	}
	switch of.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrMissingBracket, syntax.ErrMissingRepeatArgument,
		syntax.ErrInvalidCharRange, syntax.ErrTrailingBackslash, syntax.ErrInvalidRepeatOp:
		return true
	}
	return false
}

// isExpression reports whether a text may be an expression of ECMA-262. What RE2 lacks is not looked at, such as a look
// ahead.
func isExpression(text string) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if c := text[i]; (c|0x20)-'a' < 26 && !strings.ContainsRune("bBcdDfknpPrsStuvwWx", rune(c)) {
			return false
		}
	}
	_, err := syntax.Parse(fromECMA(text), syntax.Perl)
	return err == nil || !IsMistaken(err)
}
