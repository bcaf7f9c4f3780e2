// Package reword proposes the wording of the API conventions for messages that authors of policies
// and schemas write. It knows a table of forms, and leaves all else as it is.
package reword

import (
	"regexp"
	"slices"
	"strings"
)

// Message returns the message as it could be instead by the wording of the API conventions (VAL-3,
// VAL-4), and what is against them, one short sentence each. A message in which no form is found is
// returned unchanged, without a problem: to say nothing is better than a proposal that is no English
// or means something else.
func Message(message string) (better string, problems []string) {
	if !hasCue(message) {
		return message, nil
	}
	return reworded(message)
}

// reworded is Message for a text that may have a form.
func reworded(message string) (better string, problems []string) {
	better = message
	for _, f := range forms {
		better = f.replace(better, func(found string) {
			problem := f.problem + ", not '" + strings.ToLower(strings.Join(strings.Fields(found), " ")) + "'"
			if !slices.Contains(problems, problem) {
				problems = append(problems, problem)
			}
		})
	}
	if quoted := singleQuoted(better); quoted != better {
		better, problems = quoted, append(problems, "literals must be in single quotes")
	}
	return better, problems
}

// Advice returns one sentence with what is against the conventions in an author's message, and what
// it could be instead; it is empty if there is nothing to propose. See [Message].
func Advice(message string) string {
	better, problems := Message(message)
	if len(problems) == 0 {
		return ""
	}
	return strings.Join(problems, "; ") + "; better: " + better
}

// replace replaces the form in a text, and reports each text that it replaces.
func (f *form) replace(text string, report func(found string)) string {
	var b strings.Builder
	last := 0
	code := quoted(text)
	for _, at := range f.pattern.FindAllStringSubmatchIndex(text, -1) {
		if code.has(at[0]) || !f.isClause && isCondition(text[:at[0]]) || f.hasOther(text[:at[0]]) || f.endsIt &&
			!end.MatchString(text[at[1]:]) {
			continue
		}
		found, with := text[at[0]:at[1]], f.expand(text, at)
		if strings.EqualFold(found, with) {
			continue
		}
		b.WriteString(text[last:at[0]])
		b.WriteString(capitalAs(found, with))
		last = at[1]
		report(found)
	}
	return b.String() + text[last:]
}

// subordinate introduces a clause that states something and demands nothing: "if it should be set".
// A comma or a bracket that closes ends the clause.
var subordinate = regexp.MustCompile(
	`(?i)\b(?:if|when|whenever|where|unless|while|because|since|that|which|who|whose|why|what|how|as|than|\()\b[^,;.)]*$|\([^)]*$`)

// isCondition reports whether what follows a text belongs to a clause that demands nothing.
func isCondition(before string) bool { return subordinate.MatchString(before) }

// capitalAs begins with a capital if the replaced text did.
func capitalAs(found, with string) string {
	if c := found[0]; c < 'A' || c > 'Z' || with == "" {
		return with
	}
	return strings.ToUpper(with[:1]) + with[1:]
}

// spans are parts of a text, each from its first byte to behind its last one.
type spans [][2]int

func (s spans) has(at int) bool {
	return slices.ContainsFunc(s, func(x [2]int) bool { return x[0] <= at && at < x[1] })
}

// quoted returns what is in quotes of any kind, which is code. An apostrophe within a word is no quote.
func quoted(text string) spans {
	var found spans
	for i := 0; i < len(text); i++ {
		q := text[i]
		if q != '\'' && q != '"' && q != '`' || i > 0 && isWord(text[i-1]) {
			continue
		}
		for end := i + 1; end < len(text); end++ {
			if text[end] == q && (q != '\'' || end+1 == len(text) || !isWord(text[end+1])) {
				found = append(found, [2]int{i, end + 1})
				i = end
				break
			}
		}
	}
	return found
}

func isWord(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

// literal matches one literal in double quotes, with what may stand beside it.
var literal = regexp.MustCompile("(^|[ (,:\\[])\"([^\"'`\\s\\\\]+)\"($|[ ),.;:\\]])")

// singleQuoted gives literals single quotes, if each double quote of the text is one of a literal.
func singleQuoted(text string) string {
	if strings.ContainsRune(text, '\'') {
		return text // the kinds of quotes may be there to tell two things apart
	}
	got := text
	for {
		next := literal.ReplaceAllString(got, "$1'$2'$3")
		if next == got {
			break
		}
		got = next
	}
	if strings.ContainsRune(got, '"') {
		return text
	}
	return got
}
