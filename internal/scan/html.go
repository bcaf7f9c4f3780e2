package scan

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/admission-gateway/gateway/internal/markup"
)

// A bar is one bar of a plot.
type bar struct {
	name         string
	count, of    int64
	width, whole int
	y, textY     int
}

// A plot is a plot of horizontal bars.
type plot struct {
	title  string
	height int
	bars   []bar
}

const (
	barHeight = 22
	plotWidth = 420
	maxBars   = 20
)

// newPlot draws counts out of wholes.
func newPlot(title string, names []string, counts, wholes []int64) plot {
	n := min(len(names), maxBars)
	p := plot{title: title, height: n*barHeight + 4}
	most := int64(1)
	for _, whole := range wholes[:n] {
		most = max(most, whole)
	}
	for i := range n {
		p.bars = append(p.bars, bar{
			name: names[i], count: counts[i], of: wholes[i],
			width: int(counts[i] * plotWidth / most), whole: int(wholes[i] * plotWidth / most),
			y: i*barHeight + 2, textY: i*barHeight + 17,
		})
	}
	return p
}

// plots returns the plots of the page.
func (r *Report) plots() (all []plot) {
	var names []string
	var counts, wholes []int64
	for _, p := range r.policies() {
		names, counts, wholes = append(names, p.Name), append(counts, p.Count.Denied+p.Count.Audited), append(wholes, p.Count.Assessed)
	}
	if len(names) > 0 {
		all = append(all, newPlot("Denied and audited objects by policy", names, counts, wholes))
	}
	for _, t := range r.tables() {
		names, counts, wholes = nil, nil, nil
		for _, p := range t.rows {
			names, counts, wholes = append(names, p.Name), append(counts, p.Count.Denied+p.Count.Unjudged), append(wholes, p.Count.Objects)
		}
		all = append(all, newPlot("Denied objects by "+t.title, names, counts, wholes))
	}
	return all
}

// writeHTML writes the report as a page of its own: it loads nothing, runs no script, and shows every value as text.
func (r *Report) writeHTML(w io.Writer) error {
	p := htmlPage{}
	p.report(r)
	_, err := io.WriteString(w, p.String())
	return err
}

type htmlPage struct{ markup.Page }

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Scan by policies</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #1c2733; background: #fff; }
p, li, h1, h2 { overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: 1em 0; }
th, td { text-align: left; padding: .2em .8em; border-bottom: 1px solid #d8dee4; vertical-align: top; overflow-wrap: anywhere; min-width: 4em; }
th { white-space: nowrap; } td.n, th.n { text-align: right; } td.says { min-width: 18em; }
.deny, .added, .unjudged { color: #b42318; }
.warn, .reworded, .edited, .change { color: #8a5900; }
.removed { color: #176a33; }
svg text { font: 13px system-ui, sans-serif; fill: #1c2733; } .whole { fill: #d8dee4; } .part { fill: #b42318; }
@media (max-width: 40rem) {
  .plot, thead { display: none; } tr { display: block; border-bottom: 1px solid #d8dee4; padding: .3em 0; }
  td, td.n { display: block; border: 0; padding: .1em 0; text-align: left; } td:empty { display: none; }
  td[data-head]::before { content: attr(data-head) ": "; color: #566370; }
}
@media (prefers-color-scheme: dark) {
  td[data-head]::before { color: #9aa7b4; } tr { border-color: #333b47; }
  body { color: #dde3e9; background: #14191f; } th, td { border-color: #333b47; }
  .deny, .added, .unjudged { color: #ff8a80; } .warn, .reworded, .edited, .change { color: #f0c060; } .removed { color: #81c995; }
  svg text { fill: #dde3e9; } .whole { fill: #333b47; } .part { fill: #e5484d; }
}
</style>
</head>
<body>
<h1>Scan by policies</h1>
`

func (p *htmlPage) report(r *Report) {
	p.Add(pageHead)
	as := "created"
	if r.As == Update {
		as = "updated"
	}
	p.Add(`<p>{}, judged as if each were {}:
{} denied, {} not judged, {} warned of, {} audited; in {}s.</p>
`, objects(r.Objects), as, r.Denied, r.Unjudged, r.Warned, r.Audited, strconv.FormatFloat(r.Seconds, 'f', 2, 64))
	if r.IsDiff {
		p.Add("<p>Compared with the old policies: {} newly denied, {} no longer; findings added for {}, removed for {}, reworded for {}; edited otherwise: {}.</p>\n",
			objects(r.Changes[Refused]), r.Changes[Accepted], r.Changes[Added], r.Changes[Removed], r.Changes[Reworded], r.Changes[Edited])
	}
	for _, of := range r.plots() {
		p.plot(&of)
	}
	p.policies(r.policies())
	for _, t := range r.tables() {
		p.table(&t)
	}
	p.findings(r.Listed)
	p.AddIf("<p>Counted and not listed: {} more.</p>\n", r.Findings-int64(len(r.Listed)))
	if len(r.Skipped) > 0 {
		p.Add("<h2>Skipped</h2>\n<ul>")
		for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
			p.Add("<li>{}: {}</li>", r.Skipped[reason], reason)
		}
		p.Add("</ul>\n")
	}
	if len(r.Unused) > 0 {
		p.Add("<h2>Policies that judge no object</h2>\n")
		p.list(r.Unused)
	}
	if len(r.Notes) > 0 {
		p.Add("<h2>Notes</h2>\n")
		p.list(r.Notes)
	}
	p.Add("</body>\n</html>\n")
}

func (p *htmlPage) plot(of *plot) {
	p.Add(`<section class="plot"><h2>{}</h2>`+"\n"+`<div class="wide"><svg width="760" height="{}" role="img" aria-label="{}">`+"\n", of.title, of.height, of.title)
	for _, b := range of.bars {
		p.Add(`<text x="0" y="{}">{}</text>`, b.textY, b.name)
		p.Add(`<rect x="240" y="{}" width="{}" height="18" class="whole"></rect>`, b.y, b.whole)
		p.Add(`<rect x="240" y="{}" width="{}" height="18" class="part"></rect>`, b.y, b.width)
		p.Add(`<text x="670" y="{}">{} of {}</text>`+"\n", b.textY, b.count, b.of)
	}
	p.Add("</svg></div></section>\n")
}

func (p *htmlPage) policies(all []row[PolicyTally]) {
	if len(all) == 0 {
		return
	}
	p.Add("<h2>Policies</h2>\n")
	heads := []string{"Policy", "Judged", "Denied", "Audited", "Failed", "Changed"}
	p.counted(heads)
	for _, of := range all {
		c := of.Count
		p.row(heads, of.Name, c.Assessed, c.Denied, c.Audited, c.Failed, c.Changed)
	}
	p.end()
}

func (p *htmlPage) table(t *table) {
	p.Add("<h2>By {}</h2>\n", t.title)
	heads := []string{t.title, "Objects", "Denied", "Not judged", "Warned", "Audited"}
	p.counted(heads)
	for _, of := range t.rows {
		c := of.Count
		p.row(heads, of.Name, c.Objects, c.Denied, c.Unjudged, c.Warned, c.Audited)
	}
	p.end()
}

// counted begins a table of names with numbers.
func (p *htmlPage) counted(heads []string) {
	p.Add(`<div class="wide"><table>`+"\n<thead><tr><th>{}</th>", heads[0])
	for _, head := range heads[1:] {
		p.Add(`<th class="n">{}</th>`, head)
	}
	p.Add("</tr></thead>\n<tbody>\n")
}

// row writes a row of it. On a narrow screen each number stands behind the head of its column.
func (p *htmlPage) row(heads []string, name string, numbers ...int64) {
	p.Add("<tr><td>{}</td>", name)
	for i, n := range numbers {
		p.Add(`<td class="n" data-head="{}">{}</td>`, heads[i+1], n)
	}
	p.Add("</tr>\n")
}

// end ends a table.
func (p *htmlPage) end() { p.Add("</tbody>\n</table></div>\n") }

func (p *htmlPage) findings(all []Finding) {
	if len(all) == 0 {
		return
	}
	p.Add("<h2>Findings</h2>\n<div class=\"wide\"><table>\n<thead><tr><th></th><th>Object</th><th>Policy</th><th>Finding</th><th>Place</th></tr></thead>\n<tbody>\n")
	for i := range all {
		f := &all[i]
		p.Add(`<tr><td class="{}">`, f.Effect)
		p.AddIf("{} ", f.Change)
		p.Add(`{}</td><td>{}</td><td data-head="Policy">{}`, f.Effect, f.object(), f.Policy)
		p.AddIf(" / {}", f.Binding)
		p.Add("</td><td class=\"says\">")
		p.AddIf("<code>{}</code>: ", f.Field)
		p.Add("{}", f.Message)
		p.AddIf("<br>before: {}", f.Old)
		p.Add(`</td><td data-head="Place">{}</td></tr>`+"\n", f.place())
	}
	p.end()
}

func (p *htmlPage) list(all []string) {
	p.Add("<ul>")
	for _, one := range all {
		p.Add("<li>{}</li>", one)
	}
	p.Add("</ul>\n")
}
