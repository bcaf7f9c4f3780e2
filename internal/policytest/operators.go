package policytest

import (
	"fmt"
	"strconv"
	"strings"
)

// swaps has for each operator the one that takes its place.
var swaps = []struct{ operator, by string }{
	{"<=", "<"}, {">=", ">"}, {"==", "!="}, {"!=", "=="}, {"&&", "||"}, {"||", "&&"}, {"<", "<="}, {">", ">="},
}

// words are calls that others take the place of.
var words = []struct{ word, by string }{
	{".all(", ".exists("}, {".exists(", ".all("}, {".startsWith(", ".endsWith("}, {".endsWith(", ".startsWith("},
}

// changesIn returns an expression with each of its operators, numbers and quantifiers changed. Texts in quotes are
// left.
func changesIn(expression string) (all []change) {
	put := func(at, length int, by string) {
		was := expression[at : at+length]
		all = append(all, change{
			what:  fmt.Sprintf("`%s` to `%s` at %d", strings.Trim(was, ".("), strings.Trim(by, ".("), at+1),
			value: expression[:at] + by + expression[at+length:],
		})
	}
	for i := 0; i < len(expression); {
		if end := quoted(expression, i); end > i {
			i = end
			continue
		}
		rest := expression[i:]
		length := 1
		for _, s := range swaps {
			if strings.HasPrefix(rest, s.operator) {
				put(i, len(s.operator), s.by)
				length = len(s.operator)
				break
			}
		}
		for _, w := range words {
			if strings.HasPrefix(rest, w.word) {
				put(i, len(w.word), w.by)
			}
		}
		if n := digits(expression, i); n > 0 {
			if value, err := strconv.ParseInt(rest[:n], 10, 64); err == nil {
				put(i, n, strconv.FormatInt(value+1, 10))
			}
			length = n
		}
		if rest[0] == '!' && !strings.HasPrefix(rest, "!=") {
			put(i, 1, "")
		}
		i += length
	}
	return all
}

// quoted returns the end of a text in quotes that begins at i; i if none does.
func quoted(s string, i int) int {
	quote := s[i]
	if quote != '\'' && quote != '"' {
		return i
	}
	for end := i + 1; end < len(s); end++ {
		switch s[end] {
		case '\\':
			end++
		case quote:
			return end + 1
		}
	}
	return len(s)
}

// digits returns how many digits of a whole number begin at i; 0 within names and fractions.
func digits(s string, i int) (n int) {
	if i > 0 && (isWord(s[i-1]) || s[i-1] == '.') {
		return 0
	}
	for i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '9' {
		n++
	}
	if i+n < len(s) && (isWord(s[i+n]) || s[i+n] == '.') {
		return 0
	}
	return n
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
