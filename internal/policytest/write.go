package policytest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/admission-gateway/gateway/policies/finding"
)

// Formats are the names of the forms in which results are written.
var Formats = []string{"text", "json", "junit", "github", "sarif", "tap"}

// Write writes the results in one of the Formats. In text, verbose lists the cases that do not fail too.
func (s *Summary) Write(w io.Writer, format string, verbose bool) error {
	switch format {
	case "json":
		return encode(w, s)
	case "text":
		return s.writeText(w, verbose)
	}
	return write(w, format, s.Results, "policy-test", "a case is answered otherwise than its test expects")
}

// Write writes the outcomes in one of the Formats. In text, verbose lists the changes that do not survive too.
func (s *Survey) Write(w io.Writer, format string, verbose bool) error {
	switch format {
	case "json":
		return encode(w, s)
	case "text":
		return s.writeText(w, verbose)
	}
	return write(w, format, s.results(), "mutant", "a policy could say something else, and no case would fail")
}

// write writes results for other programs. Rule and why describe what a failure is.
func write(w io.Writer, format string, results []Result, rule, why string) error {
	switch format {
	case "junit":
		return writeJUnit(w, results)
	case "tap":
		return writeTAP(w, results)
	}
	var found []finding.Finding
	for _, r := range results {
		if r.Outcome == Failed {
			found = append(found, finding.Finding{
				File: r.File, Line: r.Line, Column: r.Column, Field: r.ID, Message: strings.Join(r.Problems, "\n"),
				Rule: rule,
			})
		}
	}
	return finding.Write(w, finding.Format(format), found, []finding.Check{{ID: rule, Why: why}})
}

// writeText writes what people want to know: the cases that failed, or all of them, and the sums.
func (s *Summary) writeText(w io.Writer, verbose bool) error {
	var b strings.Builder
	for _, r := range s.Results {
		if r.Outcome != Failed && !verbose {
			continue
		}
		fmt.Fprintf(&b, "%s %s (%s:%d)\n", strings.ToUpper(string(r.Outcome[:4])), r.ID, r.File, r.Line)
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "    %s\n", p)
		}
	}
	if verbose {
		for _, g := range s.Coverage.Missing {
			fmt.Fprintf(&b, "%s:%d: %s: %s\n", g.File, g.Line, g.Field, g.Why)
		}
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped in %.2fs\n", s.Passed, s.Failed, s.Skipped, s.Seconds)
	c := &s.Coverage
	fmt.Fprintf(&b, "coverage: policies %s, rules %s, branches %s\n", c.Policies, c.Rules, c.Branches)
	_, err := io.WriteString(w, b.String())
	return err
}

// String formats a share as in '75% (3 of 4)'.
func (s CoverageCount) String() string {
	return fmt.Sprintf("%d%% (%d of %d)", s.Percent(), s.Covered, s.Total)
}

func encode(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// The parts of JUnit's format that are written.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// writeJUnit writes results in the format that servers of continuous integration read, a suite for each file.
func writeJUnit(w io.Writer, results []Result) error {
	var all junitSuites
	for _, r := range results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != r.File {
			all.Suites = append(all.Suites, junitSuite{Name: r.File})
		}
		suite := &all.Suites[len(all.Suites)-1]
		class, name, _ := strings.Cut(r.ID, "/")
		c := junitCase{Name: name, Class: class, File: r.File, Line: r.Line, Time: fmt.Sprintf("%.3f", r.Seconds)}
		suite.Tests++
		switch r.Outcome {
		case Failed:
			suite.Failures++
			c.Failure = &junitFailure{r.Problems[0], strings.Join(r.Problems, "\n")}
		case Skipped:
			suite.Skipped++
			c.Skipped = &junitSkipped{strings.Join(r.Problems, "; ")}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// writeTAP writes results in the Test Anything Protocol, version 14.
func writeTAP(w io.Writer, results []Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "TAP version 14\n1..%d\n", len(results))
	for i, r := range results {
		state := "ok"
		if r.Outcome == Failed {
			state = "not ok"
		}
		fmt.Fprintf(&b, "%s %d - %s", state, i+1, tapText.Replace(r.ID))
		if r.Outcome == Skipped {
			b.WriteString(" # SKIP " + tapText.Replace(strings.Join(r.Problems, "; ")))
		}
		b.WriteByte('\n')
		if r.Outcome == Failed {
			fmt.Fprintf(&b, "  ---\n  message: %s\n  at: {file: %s, line: %d}\n  ...\n",
				jsonOf(strings.Join(r.Problems, "\n")), jsonOf(r.File), r.Line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tapText escapes what would begin a directive or another line.
var tapText = strings.NewReplacer(`\`, `\\`, "#", `\#`, "\r", " ", "\n", " ")

// writeText writes the changes that survive, or all of them, and the sums.
func (s *Survey) writeText(w io.Writer, verbose bool) error {
	var b strings.Builder
	for _, m := range s.Mutants {
		if verbose || m.Outcome == Survived {
			place := fmt.Sprintf("%s:%d", m.File, m.Line)
			if m.Column > 0 {
				place += fmt.Sprintf(":%d", m.Column)
			}
			fmt.Fprintf(&b, "%s: %s: %s: %s\n", place, m.Field, m.Outcome, m.Change)
		}
	}
	fmt.Fprintf(&b, "%d killed, %d survived, %d invalid: %d%%\n", s.Killed, s.Survived, s.Invalid, s.Percent())
	_, err := io.WriteString(w, b.String())
	return err
}

// results returns the changes as cases, which fail if the changes survive.
func (s *Survey) results() []Result {
	all := make([]Result, len(s.Mutants))
	for i, m := range s.Mutants {
		all[i] = Result{File: m.File, Line: m.Line, Column: m.Column, ID: m.Field + ": " + m.Change, Outcome: Passed}
		switch m.Outcome {
		case Survived:
			all[i].Outcome, all[i].Problems = Failed, []string{"no case fails with this change"}
		case Invalid:
			all[i].Outcome, all[i].Problems = Skipped, []string{"the changed file has errors"}
		}
	}
	return all
}
