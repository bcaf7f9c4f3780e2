package story

import (
	"cmp"
	"encoding/json"
	"io"

	"github.com/admission-gateway/gateway/internal/markup"
)

// WriteHTML writes a story as a page of its own. It has no scripts, and asks nothing of any server.
func WriteHTML(w io.Writer, s *Story) error {
	p := page{}
	p.Add(pageHead, s.Request.Method, s.Request.Path)
	p.story(s)
	p.Add("</body>\n</html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// Fragment returns a story as the part of a page that has [Style].
func Fragment(s *Story) string {
	p := page{}
	p.story(s)
	return p.String()
}

type page struct{ markup.Page }

// Style is the style of stories. Its colours have the contrast of WCAG AA, in the light and in the dark.
const Style = `.answer { font-size: 1.15rem; margin: .6rem 0 .2rem } .answer strong { padding: .05rem .5rem; border-radius: 4px; border: 1px solid currentColor }
.answer.Refused strong, .old { color: #b3141c } .answer.Admitted strong, .new { color: #1b6b2a } .about, .part { color: #566370 }
.story h2 { font-size: 1.05rem; margin: 1.4rem 0 .3rem } .story p { margin: .2rem 0; overflow-wrap: anywhere } .story summary { cursor: pointer; margin: .5rem 0; color: #566370 }
.story pre { margin: .3rem 0; padding: .5rem .7rem; background: #f3f5f7; border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere }
.story pre.source { white-space: pre; overflow-x: auto }
.finding { border-left: 3px solid #b26a00; padding-left: .8rem }
.policy { border-left: 3px solid #b8c2cc; padding-left: .8rem; margin: .7rem 0 }
.policy.Deny, .policy.Error { border-color: #c62828 } .policy.Mutate { border-color: #2e7d32 } .policy.Ignore, .policy.Audit { border-color: #b26a00 }
@media (prefers-color-scheme: dark) {
  .answer.Refused strong, .old { color: #ff8a80 } .answer.Admitted strong, .new { color: #81c995 }
  .about, .part, .story summary { color: #9aa7b4 } .story pre { background: #1e252d }
}
`

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{} {}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1d2733; background: #fff }
h1 { font-size: 1.3rem; overflow-wrap: anywhere } code, pre { font: 13px/1.45 ui-monospace, monospace }
@media (prefers-color-scheme: dark) { body { color: #dde3e9; background: #14191f } }
` + Style + `</style>
</head>
<body>
`

// story writes what matters first: the answer, and why. What changed nothing is folded.
func (p *page) story(s *Story) {
	p.Add("<div class=\"story\">\n<h1>{} {}</h1>\n", s.Request.Method, s.Request.Path)
	p.decision(&s.Answer)
	p.AddIf("<p>{}</p>\n", s.Reason())
	for _, warning := range s.Answer.Warnings {
		p.Add("<p>warning: {}</p>\n", warning)
	}
	for _, found := range s.Findings {
		p.Add(`<p class="finding">{}</p>`+"\n", found)
	}
	p.about(s)
	p.steps(s.Steps)
	p.others(s.Others)
	p.limits(s.Limits)
	p.AddIf("<details><summary>The answer</summary><pre>{}</pre></details>\n", string(s.Answer.Status))
	for i := range s.Sent {
		m := &s.Sent[i]
		p.Add("<h2>The backend would get</h2>\n<p>{} {}, {}</p>\n", m.Method, m.Target, m.Note())
		p.AddIf("<pre>{}</pre>\n", m.Body)
	}
	for _, unknown := range s.Unknown {
		p.Add(`<p class="about">Not known: {}</p>`+"\n", unknown)
	}
	if s.IsCut {
		p.Add("<p>The story is cut here: it is longer than an explanation may be.</p>\n")
	}
	p.Add("</div>\n")
}

// Reason says why the request is refused; empty if it is not.
func (s *Story) Reason() string {
	if s.Answer.Decision != Refused {
		return ""
	}
	var said struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(s.Answer.Status, &said) // an answer in another form has no message
	refusal := ""
	for i := range s.Steps {
		refusal = cmp.Or(s.Steps[i].Refusal, refusal)
	}
	return cmp.Or(said.Message, refusal)
}

// about writes who asks, and for what.
func (p *page) about(s *Story) {
	p.Add(`<p class="about">`)
	p.AddIf("by {}", s.Request.User)
	for _, group := range s.Request.Groups {
		p.Add(", {}", group)
	}
	p.Add("</p>\n")
	if s.Resource != nil {
		p.Add(`<p class="about">{}</p>`+"\n", s.Resource.String())
	}
}

func (p *page) decision(a *Answer) {
	p.Add(`<p class="answer {}"><strong>{}</strong>`, a.Decision, a.Decision)
	p.AddIf(" with {}", a.Code)
	p.Add("</p>\n")
}

// steps writes the steps in their order. Those in a row that changed nothing are folded.
func (p *page) steps(all []Step) {
	for i := 0; i < len(all); {
		if !all[i].isQuiet() {
			p.step(i+1, &all[i])
			i++
			continue
		}
		end := i + 1
		for end < len(all) && all[end].isQuiet() {
			end++
		}
		if end == i+1 {
			p.Add("<details><summary>Step {} changed nothing</summary>\n", end)
		} else {
			p.Add("<details><summary>Steps {} to {} changed nothing</summary>\n", i+1, end)
		}
		for ; i < end; i++ {
			p.step(i+1, &all[i])
		}
		p.Add("</details>\n")
	}
}

// isQuiet reports whether the step changed nothing, and asked no policy.
func (s *Step) isQuiet() bool {
	return len(s.Edits)+len(s.Expressions)+len(s.Policies) == 0 && s.Refusal == ""
}

func (p *page) step(number int, s *Step) {
	p.Add("<h2>{}. {}</h2>\n<p class=\"about\">{}</p>\n", number, s.Name, s.About)
	p.edits(s.Edits)
	p.expressions(s.Expressions)
	for i := range s.Policies {
		p.policy(&s.Policies[i])
	}
	p.AddIf("<p class=\"old\">refused: {}</p>\n", s.Refusal)
}
func (p *page) policy(of *Policy) {
	p.Add(`<div class="policy {}">`+"\n<p><strong>{}</strong> {}", of.Verdict, of.Verdict, of.Title())
	p.AddIf(" for the item {}", of.Item)
	p.AddIf(" by the binding {}", of.Binding)
	p.place(of.File, of.Line)
	p.AddIf("{}", of.Phrase())
	p.Add("</p>\n")
	for i := range of.Reasons {
		p.Add("<p>{}</p>\n", of.Reasons[i].String())
	}
	p.expressions(of.Expressions)
	for _, r := range of.Rules {
		p.Add("<p>rule {} has a value", r.Name)
		p.place(r.File, r.Line)
		p.Add("</p>\n")
	}
	for _, message := range of.Messages {
		p.Add("<p>says: {}</p>\n", message)
	}
	p.edits(of.Edits)
	p.Add("</div>\n")
}

func (p *page) place(file string, line int) {
	p.AddIf(` <span class="about">{}`, file)
	p.AddIf(":{}", line)
	if file != "" {
		p.Add("</span>")
	}
}

func (p *page) expressions(all []Expression) {
	for i := range all {
		e := &all[i]
		p.Add("<p>{}{}", e.Name(), e.place())
		p.Add(" {}</p>\n<pre class=\"source\">", e.Outcome())
		for _, line := range e.Carets() {
			if line.IsSource {
				p.Add("{}\n", line.Text)
			} else {
				p.Add(`<span class="part">{}</span>`+"\n", line.Text)
			}
		}
		p.Add("</pre>\n")
	}
}

func (p *page) edits(all []Edit) {
	if len(all) == 0 {
		return
	}
	p.Add("<pre>")
	for _, e := range all {
		if e.Old != "" {
			p.Add(`<span class="old">- {}: {}</span>`+"\n", e.Path, e.Old)
		}
		if e.New != "" {
			p.Add(`<span class="new">+ {}: {}</span>`+"\n", e.Path, e.New)
		}
	}
	p.Add("</pre>\n")
}

func (p *page) others(all []Policy) {
	if len(all) == 0 {
		return
	}
	p.Add("<details><summary>Policies that are not about the request: {}</summary>\n", len(all))
	for i := range all {
		p.Add("<p>{}</p>\n<ul>", all[i].Title())
		for j := range all[i].Reasons {
			p.Add("<li>{}</li>", all[i].Reasons[j].String())
		}
		p.Add("</ul>\n")
	}
	p.Add("</details>\n")
}

func (p *page) limits(all []Limit) {
	if len(all) == 0 {
		return
	}
	p.Add("<h2>Rate limits</h2>\n<ul>")
	for i := range all {
		p.Add("<li>{} {}{}</li>", all[i].Name, all[i].String(), all[i].Phrase())
	}
	p.Add("</ul>\n")
}
