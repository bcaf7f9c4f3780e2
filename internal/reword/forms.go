package reword

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A form is a wording that the conventions do not have, in words that leave no doubt of what is meant.
type form struct {
	pattern *regexp.Regexp
	// with is what to say instead; $1 and so on are groups of pattern.
	with string
	// problem is what the conventions ask for.
	problem string
	// not are words of which none may stand before the form.
	not []string
	// isClause is set if the form is replaced in a subordinate clause too.
	isClause bool
	// endsIt is set if the statement must end behind the form: "more than 3 items" counts, and "more than 3" compares.
	endsIt bool
}

const (
	wantMust    = "a requirement must be worded with 'must'"
	wantMustNot = "what is not possible must be worded with 'must not' for a format"
	wantMayNot  = "what is not possible must be worded with 'may not' for behaviour"
	wantWords   = "an inequality must be worded with 'greater than' or 'less than', 'or equal to' included"
)

const (
	// demanded are the verbs whose requirement 'should' words in public policies.
	demanded = `be|have|start|end|begin|contain|match|include|specify|reference|exist|follow|equal|consist|use|exceed|only`
	// formats are predicates about the value itself.
	formats = `be (?:empty|blank|null|nil|zero|negative|greater than|less than|longer than|shorter than)|` +
		`contain|include|start with|end with|begin with|match|exceed|have both`
	// behaviours are predicates about what is done to a value.
	behaviours = `be (?:changed|updated|modified|removed|unset|deleted|renamed|repeated|decreased|increased|edited|replaced|` +
		`added or removed|set once|cleared|moved|reused|downgraded)`
	// amount is a number with its unit.
	amount = `(-?\d+(?:\.\d+)?[A-Za-z%]*)`
	// subject is a name of a field, with its path.
	subject = "(`?[A-Za-z_][\\w.]*`?)"
)

// forms are applied in this order. TestForms has an example of each.
var forms = []*form{
	{pattern: words(`(?:should|shall)(?:n't|n’t| not)\s+(` + demanded + `)`), with: "must not $1", problem: wantMust},
	{pattern: words(`(?:should|shall)\s+(` + demanded + `)`), with: "must $1", problem: wantMust},
	{pattern: words(`(?:needs|has|ought)\s+to\s+be`), with: "must be", problem: wantMust},

	{pattern: words(`(?:cannot|can not|can't|can’t)\s+(` + formats + `)`), with: "must not $1", problem: wantMustNot,
		not: persons},
	{pattern: words(`(?:cannot|can not|can't|can’t)\s+(` + behaviours + `)`), with: "may not $1", problem: wantMayNot,
		not: persons},

	{pattern: words(`be\s+(?:greater|larger|bigger|higher|more)\s+(?:than\s+)?or\s+equals?(?:\s+to|\s+than)?\s+` + amount),
		with: "be greater than or equal to $1", problem: wantWords, isClause: true, endsIt: true},
	{pattern: words(`be\s+(?:less|smaller|lower)\s+(?:than\s+)?or\s+equals?(?:\s+to|\s+than)?\s+` + amount),
		with: "be less than or equal to $1", problem: wantWords, isClause: true, endsIt: true},
	{pattern: words(`be\s+(?:larger|bigger|higher|more)\s+than\s+` + amount), with: "be greater than $1",
		problem: wantWords, isClause: true, endsIt: true},
	{pattern: words(`be\s+(?:smaller|lower)\s+than\s+` + amount), with: "be less than $1", problem: wantWords,
		isClause: true, endsIt: true},

	symbol(`>=|≥`, "greater than or equal to"), symbol(`<=|≤`, "less than or equal to"), symbol(`>`, "greater than"),
	symbol(`<`, "less than"),
	bare(`>=|≥`, "greater than or equal to"), bare(`<=|≤`, "less than or equal to"), bare(`>`, "greater than"),
	bare(`<`, "less than"),
}

// cues are parts of texts that are reworded, in lower case: each form has one of them, and so have literals in quotes
// that are not single.
var cues = []string{"should", "shall", "needs", "has", "ought", "can", "equal", "than", "<", ">", `"`}

// hasCue reports whether a text may be reworded. It is looked at before the patterns, which take longer.
func hasCue(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return true // patterns take some letters beyond ASCII for ones in it
		}
	}
	lower := strings.ToLower(text)
	return slices.ContainsFunc(cues, func(cue string) bool { return strings.Contains(lower, cue) })
}

// persons are subjects of whom 'must not' would demand something else than 'cannot' states.
var persons = []string{"i", "you", "we", "they", "user", "users", "client", "clients", "who", "one", "nobody"}

// words compiles a pattern of whole words.
func words(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + pattern + `)(?:\b|$)`)
}

// symbol is a comparison in a sentence: "must be >= 1".
func symbol(sign, with string) *form {
	return &form{pattern: regexp.MustCompile(`(?i)\bbe\s*(?:` + sign + `)\s*` + amount),
		with: "be " + with + " $1", problem: wantWords, isClause: true, endsIt: true}
}

// bare is a message that is a comparison and nothing else: "replicas >= 1".
func bare(sign, with string) *form {
	return &form{pattern: regexp.MustCompile(`^` + subject + `\s*(?:` + sign + `)\s*` + amount + `\.?$`),
		with: "$1 must be " + with + " $2", problem: wantWords, isClause: true, endsIt: true}
}

// end matches what may stand behind a statement. A second comparison in signs would be left as it is, so there is none.
var end = regexp.MustCompile(`^(?:$|[.,;)]| (?:and|or|if|when|unless)\b)[^<>=≤≥]*$`)

func (f *form) expand(text string, at []int) string {
	return string(f.pattern.ExpandString(nil, f.with, text, at))
}

// hasOther reports whether the word before the form is one of f.not.
func (f *form) hasOther(before string) bool {
	fields := strings.Fields(before)
	if len(fields) == 0 {
		return false
	}
	return slices.Contains(f.not, strings.ToLower(fields[len(fields)-1]))
}
