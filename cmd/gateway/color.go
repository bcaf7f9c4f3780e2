package main

import (
	"io"
	"os"
	"regexp"

	"github.com/admission-gateway/gateway/internal/paint"
)

// wantsColor reports whether a terminal that has colours shows what is written, and its user does not say NO_COLOR.
func wantsColor(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// inColor returns a writer that paints the text of a command, if it is shown where colours are wanted.
func inColor(w io.Writer, format string, rules []paint.Rule) io.Writer {
	if format != "text" || !wantsColor(w) {
		return w
	}
	return paint.Lines(w, rules)
}

func rule(pattern string, c paint.Colour) paint.Rule {
	return paint.Rule{Pattern: regexp.MustCompile(pattern), Colour: c}
}

// findingColors paint the places of errors, and the words of what is less. Lines with an excerpt are indented.
func findingColors() []paint.Rule {
	return []paint.Rule{
		rule(`^\S.*?: (warning): `, paint.Yellow), rule(`^\S.*?: (note): `, paint.Faint),
		rule(`^(\S[^:]*(?::\d+){0,2}): `, paint.Red),
	}
}

// testColors paint the outcomes of cases.
func testColors() []paint.Rule {
	return []paint.Rule{
		rule(`^(FAIL|SURV) `, paint.Red), rule(`^(PASS|KILL) `, paint.Green), rule(`^(SKIP) `, paint.Yellow),
		rule(`, ([1-9]\d* failed),`, paint.Red),
	}
}

// scanColors paint what becomes of objects.
func scanColors() []paint.Rule {
	return []paint.Rule{
		rule(`^(?:(?:added|removed|reworded|edited) )?(deny|unjudged) `, paint.Red),
		rule(`^(?:(?:added|removed|reworded|edited) )?(warn|audit|ignored) `, paint.Yellow),
		rule(`^\d+ objects?: ([1-9]\d* denied)`, paint.Red),
	}
}

// statusColors paint what is wrong with a gateway.
func statusColors() []paint.Rule {
	return []paint.Rule{
		rule(`^gateway \S+ is (NOT READY)`, paint.Red), rule(`^gateway \S+ is (ready)`, paint.Green),
		rule(`^(.*\b(?:NOT IN FORCE|RESTART IS NEEDED)\b.*)$`, paint.Red),
		rule(`^\S+ +(Deny|Refuse|Error) +\d+$`, paint.Red),
		rule(` ((?:Unhealthy|Ejected)\S*|Ready.*, its last .*failed) `, paint.Red),
		rule(`^(THE POLICY .*|the policy '.*' failed for .*)$`, paint.Red),
		rule(`^(lost: .*\b[1-9]\d* (?:lines?|events?)\b.*)$`, paint.Yellow),
	}
}
