package routes

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/pattern"
	"github.com/admission-gateway/gateway/internal/routing"
)

// candidate is a route that takes requests for a path if they fit.
type candidate[R comparable] struct {
	condition
	isOpen bool // every request for the path fits
	rank   rank
	route  R
}

// condition is what a request has to be beside its path.
type condition struct {
	path    expression // if that is an expression
	method  string     // "" is any
	headers []value
	query   []value
}

// expression is a regular expression for whole texts. They all begin with beginning.
type expression struct {
	pattern   *pattern.Pattern
	beginning string
}

// value is what a header or a parameter has to be.
type value struct {
	name       string
	text       string
	expression expression // if it is set, it counts instead of text
}

// rank says which of two candidates at a path counts first.
type rank struct {
	expression int // the length of the expression of the path
	hasMethod  bool
	headers    int
	query      int
	order      int
}

// compare returns a negative number if r counts before other.
func (r *rank) compare(other *rank) int {
	switch {
	case r.expression != other.expression:
		return other.expression - r.expression
	case r.hasMethod != other.hasMethod:
		if r.hasMethod {
			return -1
		}
		return 1
	case r.headers != other.headers:
		return other.headers - r.headers
	case r.query != other.query:
		return other.query - r.query
	}
	return cmp.Compare(r.order, other.order)
}

// read compiles a match.
func (c *condition) read(m *routing.Match) (err error) {
	c.method = m.Method
	if m.Path.Kind == routing.PathExpression {
		if c.path, err = newExpression(m.Path.Value); err != nil {
			return err
		}
	}
	if c.headers, err = newValues(m.Headers, strings.EqualFold); err != nil {
		return err
	}
	c.query, err = newValues(m.Query, func(a, b string) bool { return a == b })
	return err
}

// compile reads a match, which is the one of that number.
func (c *candidate[R]) compile(m *routing.Match, order int) error {
	if err := c.read(m); err != nil {
		return err
	}
	c.rank = rank{hasMethod: c.method != "", headers: len(c.headers), query: len(c.query), order: order}
	if c.path.pattern != nil {
		c.rank.expression = len(m.Path.Value)
	}
	c.isOpen = c.path.pattern == nil && c.method == "" && len(c.headers) == 0 && len(c.query) == 0
	return nil
}

// newValues compiles values. Of two with the same name the first counts.
func newValues(all []routing.ValueMatch, isSame func(a, b string) bool) (made []value, err error) {
next:
	for _, m := range all {
		for i := range made {
			if isSame(made[i].name, m.Name) {
				continue next
			}
		}
		v := value{name: m.Name, text: m.Value}
		if m.IsExpression {
			if v.expression, err = newExpression(m.Value); err != nil {
				return nil, err
			}
		}
		made = append(made, v)
	}
	return made, nil
}

// newExpression compiles an expression for whole texts.
func newExpression(text string) (e expression, err error) {
	unanchored, err := regexp.Compile(text) // an error is about the text as its author wrote it
	if err != nil {
		return e, err
	}
	e.beginning, _ = unanchored.LiteralPrefix()
	e.pattern, err = pattern.New(`^(?:` + text + `)$`)
	return e, err
}

// search is what candidates are compared with.
type search struct {
	host  []byte // in lower case, without a port
	head  *message.Head
	query string
}

// fits reports whether a request is what the condition says, its path aside.
func (c *condition) fits(s *search) bool {
	if c.method != "" && string(s.head.Method) != c.method {
		return false
	}
	for i := range c.headers {
		if !c.headers[i].isInHead(s.head) {
			return false
		}
	}
	for i := range c.query {
		if !c.query[i].isInQuery(s.query) {
			return false
		}
	}
	return true
}

// isInHead reports whether a head has the value. The lines of a name are one value, with commas between them (RFC 9110,
// 5.3).
func (v *value) isInHead(head *message.Head) bool {
	lines := head.Headers()
	rest, count, only := v.text, 0, []byte(nil)
	isEqual := true
	for i := range lines {
		l := &lines[i]
		if l.Dropped || len(l.Name) != len(v.name) || !strings.EqualFold(str(l.Name), v.name) {
			continue
		}
		if count++; count == 1 {
			only = l.Value
		} else {
			isEqual = isEqual && strings.HasPrefix(rest, ",")
			rest = strings.TrimPrefix(rest, ",")
		}
		isEqual = isEqual && strings.HasPrefix(rest, str(l.Value))
		rest = strings.TrimPrefix(rest, str(l.Value))
	}
	switch {
	case count == 0:
		return false
	case v.expression.pattern == nil:
		return isEqual && rest == ""
	case count == 1:
		return v.expression.pattern.Match(str(only))
	}
	return v.expression.pattern.Match(joined(lines, v.name))
}

// joined returns the value of all lines of a name.
func joined(lines []message.Header, name string) string {
	var all [][]byte
	for i := range lines {
		if l := &lines[i]; !l.Dropped && strings.EqualFold(str(l.Name), name) {
			all = append(all, l.Value)
		}
	}
	return string(bytes.Join(all, []byte(",")))
}

// isInQuery reports whether the first parameter of the name has the value.
func (v *value) isInQuery(query string) bool {
	for query != "" {
		var one string
		one, query, _ = strings.Cut(query, "&")
		name, text, _ := strings.Cut(one, "=")
		if !isDecoded(name, v.name) {
			continue
		}
		if v.expression.pattern == nil {
			return isDecoded(text, v.text)
		}
		return v.expression.pattern.Match(decoded(text))
	}
	return false
}

// isDecoded reports whether a part of a query is another text once it is decoded.
func isDecoded(part, want string) bool {
	i := 0
	for ; part != "" && i < len(want); i++ {
		var c byte
		if c, part = next(part); c != want[i] {
			return false
		}
	}
	return part == "" && i == len(want)
}

// decoded returns a part of a query as it is meant.
func decoded(part string) string {
	if !strings.ContainsAny(part, "%+") {
		return part
	}
	text := make([]byte, 0, len(part))
	for part != "" {
		var c byte
		c, part = next(part)
		text = append(text, c)
	}
	return string(text)
}

// next returns the first byte of a part of a query, decoded, and what follows it. A '%' that no two hexadecimal digits
// follow is itself.
func next(part string) (c byte, rest string) {
	switch {
	case part[0] == '+':
		return ' ', part[1:]
	case part[0] == '%' && len(part) > 2:
		if high, low := message.HexDigit(part[1]), message.HexDigit(part[2]); high >= 0 && low >= 0 {
			return byte(high<<4 | low), part[3:]
		}
	}
	return part[0], part[1:]
}
