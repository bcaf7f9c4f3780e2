package explanation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/paint"
)

// A Form is how an explanation is written.
type Form string

// The forms.
const (
	JSON Form = "json"
	Text Form = "text"
	HTML Form = "html"
)

// Write returns an explanation in a form, with its media type.
func Write(s *Explanation, in Form) (contentType string, body []byte) {
	var b bytes.Buffer
	switch in {
	case HTML:
		if WriteHTML(&b, s) == nil { // a buffer takes everything
			return "text/html; charset=utf-8", b.Bytes()
		}
	case Text:
		WriteText(&b, s, false)
		return "text/plain; charset=utf-8", b.Bytes()
	}
	b.Reset()
	WriteJSON(&b, s)
	return "application/json", b.Bytes()
}

// WriteJSON writes an explanation as JSON.
func WriteJSON(w io.Writer, s *Explanation) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(s) // of texts, numbers and what was JSON before
}

// WriteText writes an explanation for people to read, on a terminal in colours.
func WriteText(w io.Writer, s *Explanation, coloured bool) {
	t := &texter{w: w, coloured: coloured}
	t.request(s)
	for i := range s.Steps {
		t.step(i+1, &s.Steps[i])
	}
	t.others(s.Others)
	t.limits(s.Limits)
	t.answer(s)
	for i := range s.Sent {
		t.message(&s.Sent[i])
	}
	for _, text := range s.Findings {
		t.line(0, "%s", text)
	}
	for _, text := range s.Unknown {
		t.line(0, "Not known: %s", text)
	}
	if s.IsCut {
		t.line(0, "The story is cut here: it is longer than an explanation may be.")
	}
}

type texter struct {
	w        io.Writer
	coloured bool
}

func (t *texter) line(depth int, format string, args ...any) {
	for i, a := range args {
		if s, is := a.(string); is {
			args[i] = printable(s)
		}
	}
	_, _ = fmt.Fprintf(t.w, strings.Repeat("  ", depth)+format+"\n", args...) // who prints sees what is missing
}

// painted is a text in a colour, which was made printable before.
type painted string

func (t *texter) paint(colour paint.Colour, text string) painted {
	if text = printable(text); !t.coloured {
		return painted(text)
	}
	return painted(colour.Text(text))
}

// printable is a text without what a terminal takes for commands.
func printable(s string) string {
	clean := func(r rune) bool { return r != utf8.RuneError && (unicode.IsPrint(r) || r == '\n') }
	if strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case clean(r):
			b.WriteRune(r)
		case r == '\t':
			b.WriteByte(' ')
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func (t *texter) request(s *Explanation) {
	r := &s.Request
	by := ""
	if r.User != "" {
		by = " by " + r.User
	}
	if len(r.Groups) > 0 {
		by += " (" + strings.Join(r.Groups, ", ") + ")"
	}
	t.line(0, "%s%s", t.paint(paint.Bold, r.Method+" "+r.Path), by)
	if s.Resource != nil {
		t.line(1, "%s", s.Resource.String())
	}
}

// String says in a phrase what a request is about.
func (r *Resource) String() string {
	if r.Resource == "" {
		return "no resource"
	}
	name := r.Resource
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	if r.Group != "" {
		name += "." + r.Group
	}
	if r.Version != "" {
		name += ", " + r.Version
	}
	text := r.Verb + " " + name
	if r.Operation != "" {
		text += ", " + r.Operation
	}
	if r.Name != "" {
		text += ", name " + r.Name
	}
	if r.Namespace != "" {
		text += ", namespace " + r.Namespace
	}
	if !r.IsDescribed {
		text += "; no policy file describes it"
	}
	return text
}

func (t *texter) step(number int, s *Step) {
	t.line(0, "%s: %s", t.paint(paint.Bold, fmt.Sprintf("%d. %s", number, s.Name)), s.About)
	t.edits(2, s.Edits)
	for i := range s.Expressions {
		t.expression(2, &s.Expressions[i])
	}
	for i := range s.Policies {
		t.policy(&s.Policies[i])
	}
	if s.Refusal != "" {
		t.line(2, "%s: %s", t.paint(paint.Red, "refused"), s.Refusal)
	}
}

func (t *texter) edits(depth int, edits []Edit) {
	for _, e := range edits {
		if e.Old != "" {
			t.line(depth, "%s", t.paint(paint.Red, "- "+e.Path+": "+e.Old))
		}
		if e.New != "" {
			t.line(depth, "%s", t.paint(paint.Green, "+ "+e.Path+": "+e.New))
		}
	}
}

// verdictColours are the colours of verdicts that are not the usual ones.
var verdictColours = map[string]paint.Colour{"Deny": paint.Red, "Error": paint.Red, "Ignore": paint.Yellow,
	"Audit": paint.Yellow, "Mutate": paint.Green}

func (t *texter) policy(p *Policy) {
	by := ""
	if p.Item != "" {
		by += " for the item " + p.Item
	}
	if p.Binding != "" {
		by += " by the binding " + p.Binding
	}
	t.line(1, "%s  %s%s%s%s", t.paint(verdictColours[p.Verdict]+paint.Bold, p.Verdict), p.Title(), by,
		place(p.File, p.Line), p.Phrase())
	for _, r := range p.Reasons {
		t.line(3, "%s", r.String())
	}
	for i := range p.Expressions {
		t.expression(3, &p.Expressions[i])
	}
	for _, r := range p.Rules {
		t.line(3, "rule %s has a value%s", r.Name, place(r.File, r.Line))
	}
	for _, m := range p.Messages {
		t.line(3, "says: %s", m)
	}
	t.edits(3, p.Edits)
}

// Title is kind and name.
func (p *Policy) Title() string { return strings.TrimSpace(p.Kind + " " + p.Name) }

func place(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return "  " + file
	}
	return fmt.Sprintf("  %s:%d", file, line)
}

// Outcome describes the result of an expression.
func (e *Expression) Outcome() string {
	switch {
	case e.Error != "":
		return "has no value: " + e.Error
	case e.Value == "":
		return "has no value"
	}
	return "is " + e.Value
}

// Name is the name of the expression.
func (e *Expression) Name() string {
	switch {
	case e.Variable != "":
		return "variables." + e.Variable
	case e.Field != "":
		return e.Field
	}
	return "expression"
}

// Place says where the expression is; empty if that is not known.
func (e *Expression) Place() string {
	switch {
	case e.Line == 0:
		return ""
	case e.File != "":
		return fmt.Sprintf(" (%s:%d)", e.File, e.Line)
	}
	return fmt.Sprintf(" (line %d)", e.Line)
}

func (t *texter) expression(depth int, e *Expression) {
	at := e.Place()
	colour := paint.None
	if e.Value == "false" || e.Error != "" {
		colour = paint.Yellow
	}
	t.line(depth, "%s%s %s", e.Name(), at, t.paint(colour, e.Outcome()))
	for _, line := range e.Carets() {
		if line.IsSource {
			t.line(depth+1, "%s", line.Text)
		} else {
			t.line(depth+1, "%s", t.paint(paint.Faint, line.Text))
		}
	}
	if e.IsDoubtful {
		t.line(depth+1, "the values of its parts are not known")
	}
}

// A CaretLine is a line of an expression, or the value of a part below it.
type CaretLine struct {
	Text     string
	IsSource bool
}

// Carets are the lines of the expression, and below each the values of its parts, with a caret at
// the part.
func (e *Expression) Carets() (all []CaretLine) {
	for i, source := range strings.Split(strings.TrimRight(e.Text, "\n"), "\n") {
		all = append(all, CaretLine{strings.ReplaceAll(source, "\t", " "), true})
		for _, p := range e.Parts {
			if p.Line != i+1 {
				continue
			}
			text := strings.Repeat(" ", max(p.Column-1, 0)) + "^ " + p.Value
			if p.InLoop {
				text += " (last round)"
			}
			all = append(all, CaretLine{Text: text})
		}
	}
	return all
}

func (t *texter) others(others []Policy) {
	if len(others) == 0 {
		return
	}
	t.line(0, "%s", t.paint(paint.Bold, "Policies that are not about the request"))
	for i := range others {
		p := &others[i]
		t.line(1, "%s%s%s", p.Title(), place(p.File, p.Line), p.Phrase())
		for _, r := range p.Reasons {
			t.line(2, "%s", r.String())
		}
	}
}

// String says why, with the place that decides.
func (r *Reason) String() string {
	var b strings.Builder
	if r.Binding != "" {
		b.WriteString("the binding " + r.Binding + ": ")
	}
	if r.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", r.File, r.Line)
	}
	if r.Field != "" {
		b.WriteString(r.Field + ": ")
	}
	return b.String() + r.Because
}

func (t *texter) limits(limits []Limit) {
	if len(limits) == 0 {
		return
	}
	t.line(0, "%s", t.paint(paint.Bold, "Rate limits"))
	for i := range limits {
		t.line(1, "%s %s%s", limits[i].Name, limits[i].String(), limits[i].Phrase())
	}
}

// String says what the limit does with the request.
func (l *Limit) String() string {
	switch {
	case l.Refuses:
		return "refuses the request"
	case l.Counts:
		return "counts the request"
	case l.Because == "":
		return "does not count the request"
	}
	return "does not count the request: " + l.Because
}

func (t *texter) answer(s *Explanation) {
	a := &s.Answer
	colour, text := paint.Green, string(a.Decision)
	if a.Decision == Refused {
		colour = paint.Red
	}
	if a.Code != 0 {
		text += fmt.Sprintf(" with %d", a.Code)
	}
	t.line(0, "%s %s", t.paint(paint.Bold, "Answer:"), t.paint(colour, text))
	for _, warning := range a.Warnings {
		t.line(1, "%s %s", t.paint(paint.Yellow, "warning:"), warning)
	}
	if len(a.Status) > 0 {
		var short bytes.Buffer
		if json.Compact(&short, a.Status) != nil {
			short.Write(a.Status)
		}
		t.line(1, "%s", short.String())
	}
}

// Note says what is left out of the body.
func (m *Message) Note() string {
	switch {
	case m.Bytes == 0:
		return "without a body"
	case m.IsHidden && m.Body == "":
		return fmt.Sprintf("with a body of %d bytes, hidden here", m.Bytes)
	case m.IsHidden:
		return fmt.Sprintf("with a body of %d bytes; parts are hidden here", m.Bytes)
	case m.IsCut:
		return fmt.Sprintf("with a body of %d bytes, cut here", m.Bytes)
	}
	return fmt.Sprintf("with a body of %d bytes", m.Bytes)
}

func (t *texter) message(m *Message) {
	t.line(0, "%s %s %s, %s", t.paint(paint.Bold, "The backend would get:"), m.Method, m.Target, m.Note())
	if m.Body != "" {
		t.line(1, "%s", m.Body)
	}
}
