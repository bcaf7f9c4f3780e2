package scan

import (
	"io"

	"github.com/admission-gateway/gateway/internal/pages"
)

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
		names, counts, wholes = append(names, p.Name), append(counts, p.Count.Denied+p.Count.Audited),
			append(wholes, p.Count.Assessed)
	}
	if len(names) > 0 {
		all = append(all, newPlot("Denied and audited objects by policy", names, counts, wholes))
	}
	for _, t := range r.tables() {
		names, counts, wholes = nil, nil, nil
		for _, p := range t.Rows {
			names, counts, wholes = append(names, p.Name), append(counts, p.Count.Denied+p.Count.Unjudged),
				append(wholes, p.Count.Objects)
		}
		all = append(all, newPlot("Denied objects by "+t.Title, names, counts, wholes))
	}
	return all
}

// An htmlPage is the data of a page of a report.
type htmlPage struct {
	*Report
	AsText     string
	Plots      []plot
	PolicyRows []row[PolicyTally]
	Tables     []table
	Unlisted   int64 // findings that were counted alone
}

// writeHTML writes the report as a page of its own: it loads nothing, runs no script, and shows every value as text.
func (r *Report) writeHTML(w io.Writer) error {
	p := htmlPage{r, "created", r.plots(), r.policies(), r.tables(), r.Findings - int64(len(r.Listed))}
	if r.As == Update {
		p.AsText = "updated"
	}
	return pages.Scan.Write(w, &p)
}
