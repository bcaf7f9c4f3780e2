package scan

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
)

//go:embed report.html
var pageText string

// pageTemplate is the report as a page of its own: it loads nothing, runs no script, and shows every value as text.
var pageTemplate = template.Must(template.New("report").Parse(pageText))

// A bar is one bar of a plot.
type bar struct {
	Name         string
	Count, Of    int64
	Width, Whole int
	Y, TextY     int
}

// A plot is a plot of horizontal bars.
type plot struct {
	Title  string
	Height int
	Bars   []bar
}

const (
	barHeight = 22
	plotWidth = 420
	maxBars   = 20
)

// newPlot draws counts out of wholes.
func newPlot(title string, names []string, counts, wholes []int64) plot {
	n := min(len(names), maxBars)
	p := plot{Title: title, Height: n*barHeight + 4}
	most := int64(1)
	for _, whole := range wholes[:n] {
		most = max(most, whole)
	}
	for i := range n {
		p.Bars = append(p.Bars, bar{
			Name: names[i], Count: counts[i], Of: wholes[i],
			Width: int(counts[i] * plotWidth / most), Whole: int(wholes[i] * plotWidth / most),
			Y: i*barHeight + 2, TextY: i*barHeight + 17,
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

// A skip is a reason why objects were not judged.
type skip struct {
	Reason string
	Count  int64
}

// A listing is a table of the page.
type listing struct {
	Title string
	Rows  []row[Part]
}

func (r *Report) writeHTML(w io.Writer) error {
	type shown struct {
		Finding
		Object, Place string
	}
	page := struct {
		*Report
		Plots    []plot
		Table    []row[PolicyTally]
		Listings []listing
		Shown    []shown
		More     int64
		Skips    []skip
		Took     string
		Diff     []int64
	}{Report: r, Plots: r.plots(), Table: r.policies(), More: r.Findings - int64(len(r.Listed)), Took: fmt.Sprintf("%.2fs", r.Seconds)}
	for i := range r.Listed {
		f := &r.Listed[i]
		page.Shown = append(page.Shown, shown{*f, f.object(), f.place()})
	}
	for _, t := range r.tables() {
		page.Listings = append(page.Listings, listing{t.title, t.rows})
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		page.Skips = append(page.Skips, skip{reason, r.Skipped[reason]})
	}
	if r.IsDiff {
		page.Diff = []int64{r.Changes[Refused], r.Changes[Accepted], r.Changes[Added], r.Changes[Removed], r.Changes[Reworded], r.Changes[Edited]}
	}
	return pageTemplate.Execute(w, page)
}
