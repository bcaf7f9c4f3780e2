package scan

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/admission-gateway/gateway/internal/quote"
)

// Formats are how reports are written.
var Formats = []string{"text", "json", "html", "policyreport"}

// Write writes the report in a format.
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "html":
		return r.writeHTML(w)
	case "policyreport":
		return r.writePolicyReports(w)
	}
	return r.writeText(w)
}

// line makes a text one line of a terminal: without control characters.
func line(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return ' '
		}
		return c
	}, s)
}

func (r *Report) writeText(w io.Writer) error {
	var b strings.Builder
	for i := range r.Listed {
		r.Listed[i].writeText(&b)
	}
	if more := r.Findings - int64(len(r.Listed)); more > 0 {
		fmt.Fprintf(&b, "… and %d more findings, which are counted below\n", more)
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = line(fmt.Sprint(c))
		}
		_, _ = io.WriteString(t, strings.Join(texts, "\t")+"\n") // into memory
	}
	end := func() {
		_ = t.Flush() // into memory
		b.WriteByte('\n')
	}
	if len(r.Policies) > 0 {
		row("POLICY", "JUDGED", "DENIED", "AUDITED", "FAILED", "CHANGED")
		for _, p := range r.policies() {
			row(p.Name, p.Count.Assessed, p.Count.Denied, p.Count.Audited, p.Count.Failed, p.Count.Changed)
		}
		end()
	}
	for _, table := range r.tables() {
		row(strings.ToUpper(table.Title), "OBJECTS", "DENIED", "UNJUDGED", "WARNED", "AUDITED")
		for _, p := range table.Rows {
			row(p.Name, p.Count.Objects, p.Count.Denied, p.Count.Unjudged, p.Count.Warned, p.Count.Audited)
		}
		end()
	}
	for _, name := range r.Unused {
		fmt.Fprintf(&b, "no object is judged by policy '%s'\n", line(name))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(&b, "skipped %d: %s\n", r.Skipped[reason], line(reason))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", line(note))
	}
	if r.IsDiff {
		fmt.Fprintf(&b, "%s newly denied, %d no longer; findings added for %d, removed for %d, reworded for %d; edited otherwise: %d\n",
			quote.Count(r.Changes[Refused], "object"), r.Changes[Accepted], r.Changes[Added], r.Changes[Removed],
			r.Changes[Reworded], r.Changes[Edited])
	}
	fmt.Fprintf(&b, "%s: %d denied, %d not judged, %d warned of, %d audited; in %.2fs\n",
		quote.Count(r.Objects, "object"), r.Denied, r.Unjudged, r.Warned, r.Audited, r.Seconds)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeText writes a finding in one line.
func (f *Finding) writeText(b *strings.Builder) {
	if f.Change != "" {
		b.WriteString(f.Change + " ")
	}
	b.WriteString(string(f.Effect) + " " + line(f.Object()))
	if f.Policy != "" {
		b.WriteString(" [" + line(f.Policy) + "]")
	}
	b.WriteString(": ")
	if f.Field != "" && !strings.Contains(f.Message, f.Field) {
		b.WriteString(line(f.Field) + ": ")
	}
	b.WriteString(line(f.Message))
	if f.Old != "" {
		b.WriteString(" (before: " + line(f.Old) + ")")
	}
	if place := f.Place(); place != "" {
		b.WriteString(" (" + line(place) + ")")
	}
	b.WriteByte('\n')
}
