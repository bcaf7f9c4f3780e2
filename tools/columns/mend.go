package main

import (
	"errors"
	"go/format"
	"go/token"
	"slices"
	"strings"
)

// rounds is how often a file is broken and formatted: a line may be broken several times.
const rounds = 12

// mend breaks the lines of a file that are too long, as far as that is possible.
func mend(src []byte) ([]byte, error) {
	now := src
	for range rounds {
		lines := read(now)
		broken, isChanged := breakAll(lines)
		if !isChanged {
			break
		}
		formatted, err := format.Source([]byte(broken))
		if err != nil {
			return nil, err
		}
		now = formatted
	}
	code, comments := wordsOf(src)
	nowCode, nowComments := wordsOf(now)
	if !slices.Equal(code, nowCode) || !slices.Equal(comments, nowComments) {
		return nil, errors.New("the file would not be the same any more")
	}
	return now, nil
}

// wordsOf are the tokens of a file without semicolons, which a line break replaces, and the words of its comments,
// which may move.
func wordsOf(src []byte) (code, comments []string) {
	for _, l := range read(src) {
		for _, p := range l.pieces {
			switch p.token {
			case token.COMMENT:
				comments = append(comments, strings.Fields(strings.TrimPrefix(p.text, "//"))...)
			case token.SEMICOLON:
			default:
				code = append(code, p.text)
			}
		}
	}
	slices.Sort(comments)
	return code, comments
}

// breakAll breaks each line that is too long once.
func breakAll(lines []line) (text string, isChanged bool) {
	var b strings.Builder
	carried := "" // words of the comment before, for this line
	for i := range lines {
		l := &lines[i]
		indent, comment, isComment := l.comment()
		if carried != "" {
			comment = joined(carried, comment)
			l.text, carried = indent+comment, ""
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		switch {
		case !isComment && l.width() <= maxColumns || widthOf(l.text) <= maxColumns || l.isExempt():
			b.WriteString(l.text)
		case isComment:
			fits, rest := cut(indent, comment)
			if rest == "" {
				b.WriteString(l.text)
				continue
			}
			isChanged = true
			b.WriteString(indent + fits)
			if i+1 < len(lines) && goesOn(l, &lines[i+1]) {
				carried = rest
			} else {
				b.WriteString("\n" + indent + continuation(comment) + rest)
			}
		default:
			broken := l.broken()
			isChanged = isChanged || broken != l.text
			b.WriteString(broken)
		}
	}
	return b.String(), isChanged
}

// joined puts words at the beginning of the text of a comment.
func joined(words, comment string) string {
	return "// " + words + " " + strings.TrimPrefix(comment, "// ")
}

// goesOn reports whether the next line is a comment that goes on with the text of this one.
func goesOn(l, next *line) bool {
	indent, comment, _ := l.comment()
	other, text, isComment := next.comment()
	return isComment && indent == other && continuation(comment) == "// " && strings.HasPrefix(text, "// ") &&
		len(text) > 3 &&
		!strings.ContainsRune(" \t-*#", rune(text[3]))
}

// continuation is what a further line of a comment begins with.
func continuation(comment string) string {
	text := strings.TrimPrefix(comment, "//")
	inner := strings.TrimLeft(text, " ")
	n := len(text) - len(inner)
	if strings.HasPrefix(inner, "- ") {
		n += 2
	}
	return "//" + strings.Repeat(" ", n)
}

// cut cuts a comment where a line must end. Rest is empty if it cannot be cut, or holds code.
func cut(indent, comment string) (fits, rest string) {
	if !strings.HasPrefix(comment, "// ") {
		return comment, ""
	}
	least := len(continuation(comment))
	for end := len(comment); ; {
		end = strings.LastIndexByte(comment[:end], ' ')
		if end <= least {
			return comment, ""
		}
		if widthOf(indent+comment[:end]) <= maxColumns {
			return comment[:end], comment[end+1:]
		}
	}
}

// broken is the line with one break more; the line itself if there is no place for one.
func (l *line) broken() string {
	if n := len(l.pieces); n > 1 && l.pieces[n-1].token == token.COMMENT {
		return l.withoutComment(l.pieces[n-1])
	}
	depth, best, most := 0, 0, -1<<30
	assigned := l.assignment()
	isFunc, isResults := l.pieces[0].token == token.FUNC, false // the results of a function stay together
	for i, p := range l.pieces {
		switch p.token {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			isResults = isResults || isFunc && depth == 0 && p.token == token.LPAREN &&
				l.pieces[i-1].token == token.RPAREN
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
			isResults = isResults && depth > 0
		}
		if i+1 == len(l.pieces) || widthOf(l.text[:p.end]) > maxColumns {
			break
		}
		cost, isPlace := costOf(p.token)
		if !isPlace || isResults || i < assigned || p.token == token.LPAREN && !l.isCall(i) ||
			l.pieces[i+1].token == token.COMMENT {
			continue
		}
		value := widthOf(strings.TrimLeft(l.text[:p.end], "\t")) - cost - 60*depth
		// A break before the end of a bracket says nothing, and one at the very beginning saves nothing.
		switch next := l.pieces[i+1].token; {
		case next == token.RPAREN || next == token.RBRACE || next == token.RBRACK:
			continue
		case widthOf(strings.TrimLeft(l.text[:p.end], "\t")) < 24:
			value -= 40
		}
		if value >= most {
			best, most = p.end, value
		}
	}
	if best == 0 {
		return l.text
	}
	return l.text[:best] + "\n" + strings.TrimLeft(l.text[best:], " ")
}

// isCall reports whether a bracket is that of a call: gofmt takes a break out that is behind another one.
func (l *line) isCall(i int) bool {
	if i == 0 {
		return false
	}
	before := l.pieces[i-1].token
	return before == token.IDENT || before == token.RPAREN || before == token.RBRACK || before == token.RBRACE
}

// assignment is the index of the operator by which the line assigns, before which it is not broken; -1 if it assigns
// nothing.
func (l *line) assignment() int {
	depth := 0
	for i, p := range l.pieces {
		switch p.token {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
		case token.ASSIGN, token.DEFINE:
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// costOf is how little a break after a token is liked; false if there can be none.
func costOf(t token.Token) (int, bool) {
	switch t {
	case token.COMMA:
		return 0, true
	case token.LOR:
		return 4, true
	case token.LAND:
		return 14, true
	case token.ADD, token.OR:
		return 18, true
	case token.LPAREN, token.LBRACE:
		return 32, true
	}
	return 0, false
}

// withoutComment moves the comment behind the code to a line of its own: before the code, or into the block that it
// begins.
func (l *line) withoutComment(c piece) string {
	indent := l.text[:len(l.text)-len(strings.TrimLeft(l.text, "\t"))]
	code := strings.TrimRight(l.text[:c.start], " ")
	if last := l.pieces[len(l.pieces)-2].token; last == token.LBRACE || last == token.COLON {
		return code + "\n" + indent + "\t" + c.text
	}
	return indent + c.text + "\n" + code
}
