package reword

import (
	"regexp"
	"strings"
	"unicode"
)

// symbol finds inequalities in mathematical notation. Addresses, what stands in angle brackets and arrows are found with
// them, as they are none.
var symbol = regexp.MustCompile(`https?://\S+|=?<[A-Za-z][\w .,:/-]*>|<?[-=]{2,}>|<-+>?|-+>|<=>|=>\s*[^\s\d-]|(<=|>=|=<|=>|==|!=|≤|≥|<|>)`)

// bounds are two inequalities in one: 1 <= x <= 5.
var bounds = regexp.MustCompile(`([\w.-]+)\s*(<=?|≤)\s*[\w.` + "`" + `]+\s*(<=?|≤)\s*([\w.-]+)`)

var symbolWords = map[string]string{
	"<": "less than", ">": "greater than", "<=": "less than or equal to", ">=": "greater than or equal to",
	"=<": "less than or equal to", "=>": "greater than or equal to", "≤": "less than or equal to", "≥": "greater than or equal to",
	"==": "equal to", "!=": "different from",
}

// conditions introduce a clause that states something and demands nothing.
var conditions = regexp.MustCompile(`(?i)\b(?:if|when|where|unless|while|because|since|that)\b[^,;]*$`)

func (r *rewording) symbols() {
	r.bounds()
	var b strings.Builder
	last := 0
	quoted := quotes(r.text)
	for _, at := range symbol.FindAllStringSubmatchIndex(r.text, -1) {
		if at[2] < 0 || quoted.has(at[2]) {
			continue
		}
		found := r.text[at[2]:at[3]]
		before := strings.TrimRight(r.text[last:at[0]], " ")
		end := at[1] + len(r.text[at[1]:]) - len(strings.TrimLeft(r.text[at[1]:], " "))
		after := strings.TrimLeft(r.text[at[1]:], " ")
		if before == "" && last > 0 || after == "" || !isOperand(before, after) {
			continue
		}
		with := symbolWords[found]
		switch {
		case b.Len() == 0 && before == "" || lastWordIs(before, "be", "is", "are", "been", "or", "and"),
			strings.LastIndexByte(before, '(') > strings.LastIndexByte(before, ')'):
		case lastWordIs(before, "must", "not", "should"):
			with = "be " + with
		case conditions.MatchString(before):
			with = "is " + with
		default:
			with = "must be " + with
		}
		b.WriteString(before)
		if before != "" && !strings.HasSuffix(before, "(") {
			b.WriteByte(' ')
		}
		b.WriteString(with + " ")
		last = end
		r.problem("an inequality must be in words, not '" + found + "'")
	}
	r.text = b.String() + r.text[last:]
}

func (r *rewording) bounds() {
	at := bounds.FindStringSubmatchIndex(r.text)
	if at == nil || quotes(r.text).has(at[0]) {
		return
	}
	part := func(i int) string { return r.text[at[2*i]:at[2*i+1]] }
	before := strings.TrimRight(r.text[:at[0]], " ")
	with := "greater than " + part(1) + " and less than " + part(4)
	if len(part(2)) > 1 && len(part(3)) > 1 {
		with = "between " + part(1) + " and " + part(4) + ", inclusive"
	}
	if !lastWordIs(before, "be", "is", "are", "in", "range", "within") {
		with = "must be " + with
	}
	r.text = strings.TrimLeft(before+" "+with, " ") + r.text[at[1]:]
	r.problem("an inequality must be in words, not '" + part(2) + "'")
}

// isOperand reports whether a symbol between the texts compares what is before it with what is after it.
func isOperand(before, after string) bool {
	first, _ := firstRune(after)
	if !unicode.IsLetter(first) && !unicode.IsDigit(first) && !strings.ContainsRune("-'`\"$({", first) {
		return false
	}
	if before == "" {
		return unicode.IsDigit(first)
	}
	last := before[len(before)-1]
	return last == ')' || last == '\'' || last == '`' || last == '"' || last == '(' || last == ',' || last == ':' || isAlnum(last) || last == ']'
}

func firstRune(s string) (rune, bool) {
	for _, r := range s {
		return r, true
	}
	return 0, false
}

func lastWordIs(s string, words ...string) bool {
	s = strings.ToLower(s)
	for _, w := range words {
		if rest, ok := strings.CutSuffix(s, w); ok && (rest == "" || !isAlnum(rest[len(rest)-1])) {
			return true
		}
	}
	return false
}
