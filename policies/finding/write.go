package finding

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Format is a form in which findings are written.
type Format string

// The formats.
const (
	Text   Format = "text"
	JSON   Format = "json"
	SARIF  Format = "sarif"
	GitHub Format = "github"
)

// Formats are the names of all formats.
var Formats = []string{string(Text), string(JSON), string(SARIF), string(GitHub)}

// A Check describes a check by its id.
type Check struct {
	ID string
	// Why says what the check is for.
	Why string
	// Section names where the API conventions say so; empty if they do not.
	Section string
}

// Write writes findings in a format. Checks describe the ones that have ids.
func Write(w io.Writer, format Format, found []Finding, checks []Check) error {
	switch format {
	case JSON:
		return writeJSON(w, found)
	case SARIF:
		return writeSARIF(w, found, checks)
	case GitHub:
		return each(w, found, annotation)
	}
	return each(w, found, text)
}

func each(w io.Writer, found []Finding, show func(Finding) string) error {
	for _, f := range found {
		if _, err := fmt.Fprintln(w, show(f)); err != nil {
			return err
		}
	}
	return nil
}

// text is a line for people. Below the finding about a place within an expression stand its line and a caret.
func text(f Finding) string {
	line := f.Named()
	if f.Excerpt == "" {
		return line
	}
	excerpt := strings.TrimLeft(f.Excerpt, " \t")
	cut := utf8.RuneCountInString(f.Excerpt) - utf8.RuneCountInString(excerpt)
	return line + "\n    " + excerpt + "\n    " + strings.Repeat(" ", max(f.Column-1-cut, 0)) + "^"
}

// severity returns the word for how bad a finding is.
func severity(f Finding) string {
	switch f.Severity {
	case Error:
		return "error"
	case Gap, Note, Wording, Remark:
		return "note"
	}
	return "warning"
}

func writeJSON(w io.Writer, found []Finding) error {
	type one struct {
		File     string `json:"file"`
		Line     int    `json:"line,omitempty"`
		Column   int    `json:"column,omitempty"`
		Field    string `json:"field,omitempty"`
		Severity string `json:"severity"`
		Rule     string `json:"rule,omitempty"`
		Message  string `json:"message"`
	}
	all := make([]one, len(found))
	for i, f := range found {
		all[i] = one{f.File, f.Line, f.Column, f.Field, severity(f), f.Rule, f.Message}
	}
	return encode(w, map[string]any{"findings": all})
}

func encode(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// annotation is a finding as a command of GitHub's workflows.
func annotation(f Finding) string {
	var b strings.Builder
	level := severity(f)
	if level == "note" {
		level = "notice"
	}
	b.WriteString("::" + level + " file=" + property(f.File))
	if f.Line > 0 {
		fmt.Fprintf(&b, ",line=%d", f.Line)
	}
	if f.Column > 0 {
		fmt.Fprintf(&b, ",col=%d", f.Column)
	}
	if f.Rule != "" {
		b.WriteString(",title=" + property(f.Rule))
	}
	message := f.Message
	if f.Field != "" {
		message = f.Field + ": " + message
	}
	return b.String() + "::" + escaped.Replace(message)
}

// Workflow commands escape what would end them.
var escaped = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escaped.Replace(s))
}
