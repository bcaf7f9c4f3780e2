package policytest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// WriteText writes what people want to know: the cases that failed, or all of them, and the sums.
func (s *Summary) WriteText(w io.Writer, verbose bool) error {
	var b strings.Builder
	for _, r := range s.Results {
		if r.Outcome == Passed && !verbose {
			continue
		}
		if r.Outcome == Skipped && !verbose {
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
func (s Share) String() string {
	return fmt.Sprintf("%d%% (%d of %d)", s.Percent(), s.Covered, s.Total)
}

// WriteJSON writes everything for other programs.
func (s *Summary) WriteJSON(w io.Writer) error { return encode(w, s) }

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

// WriteJUnit writes the results in the format that servers of continuous integration read, a suite for each file.
func (s *Summary) WriteJUnit(w io.Writer) error {
	var all junitSuites
	for _, r := range s.Results {
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

// WriteText writes the changes that no case noticed.
func (s *Survey) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, m := range s.Survivors {
		fmt.Fprintf(&b, "%s:%d: %s: no case notices the change of %s\n", m.File, m.Line, m.Field, m.Change)
	}
	fmt.Fprintf(&b, "%d changes noticed, %d not noticed, %d not valid\n", s.Noticed, len(s.Survivors), s.Invalid)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes everything for other programs.
func (s *Survey) WriteJSON(w io.Writer) error { return encode(w, s) }
