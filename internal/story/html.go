package story

import (
	"io"

	"github.com/admission-gateway/gateway/internal/markup"
)

// WriteHTML writes a story as a page of its own. It has no scripts, and asks nothing of any server.
func WriteHTML(w io.Writer, s *Story) error {
	p := page{}
	p.story(s)
	_, err := io.WriteString(w, p.String())
	return err
}

type page struct{ markup.Page }

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{} {}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1d2733; background: #fff }
h1 { font-size: 1.3rem } h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem } p { margin: .2rem 0 }
pre { margin: .3rem 0; padding: .5rem .7rem; background: #f3f5f7; border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere }
.policy { border-left: 3px solid #b8c2cc; padding-left: .8rem; margin: .7rem 0 }
.Deny { border-color: #c62828 } .Mutate { border-color: #2e7d32 } .Ignore, .Audit { border-color: #b26a00 }
.old { color: #c62828 } .new { color: #2e7d32 } .part, .about { color: #5b6875 }
@media (prefers-color-scheme: dark) { body { color: #dde3e9; background: #14191f } pre { background: #1e252d } .old { color: #ff8a80 } .new { color: #81c995 } .part, .about { color: #9aa7b4 } }
</style>
</head>
<body>
<h1>{} {}</h1>
`

func (p *page) story(s *Story) {
	method, path := s.Request.Method, s.Request.Path
	p.Add(pageHead, method, path, method, path)
	p.Add("<p>")
	p.AddIf("by {}", s.Request.User)
	for _, group := range s.Request.Groups {
		p.Add(", {}", group)
	}
	p.Add("</p>\n")
	if s.Resource != nil {
		p.Add("<p>{}</p>", s.Resource.String())
	}
	p.Add("\n")
	p.decision(&s.Answer)
	for i := range s.Steps {
		p.step(i+1, &s.Steps[i])
	}
	p.others(s.Others)
	p.limits(s.Limits)
	p.Add("<h2>Answer</h2>\n")
	p.decision(&s.Answer)
	for _, warning := range s.Answer.Warnings {
		p.Add("<p>warning: {}</p>\n", warning)
	}
	p.AddIf("<pre>{}</pre>\n", string(s.Answer.Status))
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
	p.Add("</body>\n</html>\n")
}

func (p *page) decision(a *Answer) {
	p.Add("<p><strong>{}</strong>", a.Decision)
	p.AddIf(" with {}", a.Code)
	p.Add("</p>\n")
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
		p.Add("<p>{}", e.Name())
		p.AddIf(" (line {})", e.Line)
		p.Add(" {}</p>\n<pre>", e.Outcome())
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
	p.Add("<h2>Policies that are not about the request</h2>\n")
	for i := range all {
		p.Add("<p>{}</p>\n<ul>", all[i].Title())
		for j := range all[i].Reasons {
			p.Add("<li>{}</li>", all[i].Reasons[j].String())
		}
		p.Add("</ul>\n")
	}
}

func (p *page) limits(all []Limit) {
	if len(all) == 0 {
		return
	}
	p.Add("<h2>Rate limits</h2>\n<ul>")
	for i := range all {
		p.Add("<li>{} {}</li>", all[i].Name, all[i].String())
	}
	p.Add("</ul>\n")
}
