// Package reword holds the messages that authors write for failures to the wording that the API conventions ask for.
package reword

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Message checks an author's message against the wording of the API conventions (VAL-3, VAL-4).
// problems says what is against them, one short sentence each; better is the message as it could be
// instead. A message that keeps to the conventions has no problems.
//
// literals are the string literals of the expression of the message, and fields the names of the
// members that it reads: in the message they are recognised if they cannot be mistaken for plain
// words. What stands in quotes is code and is left alone.
func Message(message string, literals, fields []string) (better string, problems []string) {
	r := rewording{text: message}
	r.quote('"', "'", "literals must be in single quotes")
	for _, x := range phrases {
		r.replace(x)
	}
	r.symbols()
	for _, literal := range literals {
		r.mark(literal, '\'', "literals must be in single quotes")
	}
	for _, name := range fields {
		r.mark(name, '`', "names of fields must be in back-quotes")
	}
	return r.text, r.problems
}

// Advice says in a sentence what is against the conventions in an author's message, and what it
// could say instead; "" for a message that keeps to them. See [Message]; names returns the literals
// and fields, if they matter, and may be nil.
func Advice(message string, names func() (literals, fields []string)) string {
	var literals, fields []string
	if names != nil && mayName(message) {
		literals, fields = names()
	}
	better, problems := Message(message, literals, fields)
	if len(problems) == 0 {
		return ""
	}
	return strings.Join(problems, "; ") + "; better: " + better
}

// mayName reports whether there is anything in a message that [isCode] could take for a name.
func mayName(message string) bool {
	for i, c := range message {
		if i > 0 && (c < 'a' || c > 'z') && !strings.ContainsRune(" ,.:;()", c) {
			return true
		}
	}
	return false
}

// A rewording is a message while it is reworded.
type rewording struct {
	text     string
	problems []string
}

func (r *rewording) problem(text string) {
	if !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// A phrase is one that the conventions do not want, with what to say instead.
type phrase struct {
	pattern *regexp.Regexp
	with    string
	// problem is %s'd with what was found; "" takes the common sentence.
	why string
}

// number is an amount, as authors write it.
const number = `(-?\d[\d.,_]*|zero|two|three|four|five|six|seven|eight|nine|ten)`

const (
	wantMust  = "a requirement must be worded with 'must'"
	wantNot   = "what is not possible must be worded with 'must not' for a format and 'may not' for behaviour"
	wantWords = "an inequality must be worded with 'greater than' or 'less than', 'or equal to' included"
)

// phrases are applied in order: the longer ones first.
var phrases = []phrase{
	{words(`(?:must|may|should|shall|can)\s*(?:not|n't)\s+be\s+(?:larger|bigger|higher|more|longer)\s+than`), "must not be greater than", wantWords},
	{words(`(?:must|may|should|shall|can)\s*(?:not|n't)\s+be\s+(?:smaller|lower|fewer|shorter)\s+than`), "must not be less than", wantWords},
	{words(`(?:must|may|should|shall|can)\s*(?:not|n't)\s+(have|contain|include|use|specify|define|set)\s+(?:more|longer|greater)\s+than`), "must $1 at most", wantWords},
	{words(`(?:must|may|should|shall|can)\s*(?:not|n't)\s+(have|contain|include|use|specify|define|set)\s+(?:fewer|less)\s+than`), "must $1 at least", wantWords},
	{words(`(be|is|are)\s+(?:no|not)\s+(?:more|larger|bigger|higher|longer)\s+than`), "$1 at most", wantWords},
	{words(`(be|is|are)\s+(?:no|not)\s+(?:fewer|smaller|lower|shorter)\s+than`), "$1 at least", wantWords},
	{words(`(?:no|not)\s+longer\s+than`), "of at most", wantWords},
	{words(`(?:no|not)\s+shorter\s+than`), "of at least", wantWords},
	{words(`(?:no|not)\s+(?:more|larger|bigger|higher)\s+than`), "at most", wantWords},
	{words(`(?:no|not)\s+(?:fewer|smaller|lower)\s+than`), "at least", wantWords},

	{words(`(greater|larger|bigger|higher|more)\s+(?:than\s+)?or\s+equals?(?:\s+to|\s+than)?`), "greater than or equal to", wantWords},
	{words(`(less|smaller|lower|fewer)\s+(?:than\s+)?or\s+equals?(?:\s+to|\s+than)?`), "less than or equal to", wantWords},
	{words(`(?:larger|bigger|higher)\s+than`), "greater than", wantWords},
	{words(`(?:smaller|lower|fewer)\s+than`), "less than", wantWords},
	{words(`(be|is|are)\s+(?:more|longer)\s+than`), "$1 greater than", wantWords},
	{words(`(be|is|are)\s+shorter\s+than`), "$1 less than", wantWords},
	{words(`more\s+than\s+` + number), "more than $1", wantWords},
	{words(`(be|is|are)\s+(?:under|below)\s+` + number), "$1 less than $2", wantWords},
	{words(`(be|is|are)\s+(?:over|above)\s+` + number), "$1 greater than $2", wantWords},

	{words(`(?:should|shall)\s*(?:not|n't)`), "must not", wantMust},
	{words(`(?:ought|needs?|has|have)\s+to\s+be`), "must be", wantMust},
	{words(`(?:should|shall|ought\s+to)`), "must", wantMust},
	{words(`can\s*(?:not|'t)\s+(be\s+(?:greater|less|equal|empty|blank|null|nil|zero|negative)|contain|include|start|end|begin|match|have|exceed)`), "must not $1", wantNot},
	{words(`can\s*(?:not|'t)`), "may not", wantNot},
}

// words compiles a pattern of whole words, in which not and n't may be written together with what is before.
func words(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b` + pattern + `\b`)
}

func (r *rewording) replace(p phrase) {
	var b strings.Builder
	last := 0
	quoted := quotes(r.text)
	for _, at := range p.pattern.FindAllStringSubmatchIndex(r.text, -1) {
		if quoted.has(at[0]) {
			continue
		}
		found := r.text[at[0]:at[1]]
		with := string(p.pattern.ExpandString(nil, p.with, r.text, at))
		if strings.HasPrefix(p.with, "more than") {
			with = atLeast(p.pattern.FindStringSubmatch(found)[1])
		}
		if strings.EqualFold(with, found) {
			continue
		}
		b.WriteString(r.text[last:at[0]])
		b.WriteString(inCaseOf(found, with))
		last = at[1]
		r.problem(p.why + ", not '" + strings.ToLower(strings.Join(strings.Fields(found), " ")) + "'")
	}
	r.text = b.String() + r.text[last:]
}

// atLeast is 'more than n' for things that are counted.
func atLeast(n string) string {
	if i, err := strconv.Atoi(n); err == nil {
		return "at least " + strconv.Itoa(i+1)
	}
	if i := slices.Index(numerals, strings.ToLower(n)); i >= 0 && i+1 < len(numerals) {
		return "at least " + numerals[i+1]
	}
	return "greater than " + n
}

var numerals = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}

// inCaseOf begins with a capital if the replaced text did.
func inCaseOf(found, with string) string {
	if first := rune(found[0]); unicode.IsUpper(first) {
		return string(unicode.ToUpper(rune(with[0]))) + with[1:]
	}
	return with
}

func isAlnum(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

// spans are the parts of a text that are in quotes.
type spans [][2]int

func (s spans) has(at int) bool {
	return slices.ContainsFunc(s, func(x [2]int) bool { return x[0] <= at && at < x[1] })
}

// quotes finds what is in quotes of any kind. An apostrophe within a word is not a quote.
func quotes(text string) spans {
	var found spans
	for i := 0; i < len(text); i++ {
		q := text[i]
		if q != '\'' && q != '"' && q != '`' || i > 0 && isAlnum(text[i-1]) {
			continue
		}
		for end := i + 1; end < len(text); end++ {
			if text[end] == q && (q != '\'' || end+1 == len(text) || !isAlnum(text[end+1])) {
				found = append(found, [2]int{i, end + 1})
				i = end
				break
			}
		}
	}
	return found
}

// quote gives what is in one kind of quotes another kind.
func (r *rewording) quote(q byte, with, why string) {
	for _, at := range quotes(r.text) {
		if r.text[at[0]] != q || strings.Contains(r.text[at[0]+1:at[1]-1], with) {
			continue
		}
		r.text = r.text[:at[0]] + with + r.text[at[0]+1:at[1]-1] + with + r.text[at[1]:]
		r.problem(why)
	}
}

// asValue matches the words before a value: "is 'x'", "set to 'x'".
var asValue = regexp.MustCompile(`(?i)\b(?:be|is|are|not|to|equals|of|or)\s+$`)

// mark puts a name that the expression uses into quotes if it has none in the text: the name of a
// field anywhere but at the beginning, a literal where a value stands.
func (r *rewording) mark(name string, quote byte, why string) {
	if !isCode(name, quote == '`') {
		return
	}
	for from := 0; ; {
		i := strings.Index(r.text[from:], name)
		if i < 0 {
			return
		}
		i += from
		end := i + len(name)
		from = end
		if quote == '`' { // with the path before it
			for i > 0 && (isAlnum(r.text[i-1]) || r.text[i-1] == '.') {
				i--
			}
		}
		if i == 0 || quotes(r.text).has(i) || joined(r.text[i-1]) || end < len(r.text) && (joined(r.text[end]) || r.text[end] == '.' && end+1 < len(r.text) && isAlnum(r.text[end+1])) {
			continue
		}
		if quote == '\'' && !asValue.MatchString(r.text[:i]) {
			continue
		}
		r.text = r.text[:i] + string(quote) + r.text[i:end] + string(quote) + r.text[end:]
		from += 2
		r.problem(why)
	}
}

// joined reports whether a byte beside a name makes it part of something longer.
func joined(c byte) bool { return isAlnum(c) || strings.IndexByte("-/$*'`\"[]", c) >= 0 }

// isCode reports whether a name cannot be mistaken for a word of a sentence: of a field, one with a capital within; of a
// literal, one that is not made of small letters alone.
func isCode(name string, field bool) bool {
	if len(name) < 2 || strings.ContainsAny(name, " \t\n'`") {
		return false
	}
	if !field {
		return strings.ContainsFunc(name, func(c rune) bool { return c < 'a' || c > 'z' })
	}
	return !unicode.IsUpper(rune(name[0])) && strings.ContainsFunc(name[1:], unicode.IsUpper)
}
