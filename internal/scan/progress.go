package scan

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Bar shows progress in one line of a terminal, which it writes again and again.
type Bar struct {
	to      io.Writer
	started time.Time
	shown   time.Time
	before  int64 // objects that were judged by an earlier scan
	isBegun bool
}

// NewBar returns a bar on a terminal.
func NewBar(to io.Writer) *Bar { return &Bar{to: to, started: time.Now()} }

const (
	barWidth = 24
	barEvery = 100 * time.Millisecond
)

// Show shows how far a scan is, if that was not shown just before.
func (b *Bar) Show(p Progress) {
	now := time.Now()
	if !b.isBegun {
		b.before, b.isBegun = p.Objects, true
	}
	if now.Sub(b.shown) < barEvery {
		return
	}
	b.shown = now
	// a progress bar that cannot be shown does no harm
	_, _ = io.WriteString(b.to, "\r\x1b[K"+b.line(p, now.Sub(b.started)))
}

// line returns the line after a time.
func (b *Bar) line(p Progress, since time.Duration) string {
	text := ""
	if p.Part >= 0 {
		done := int(min(p.Part, 1) * barWidth)
		text = "[" + strings.Repeat("#", done) + strings.Repeat(".", barWidth-done) +
			fmt.Sprintf("] %3d%% ", int(min(p.Part, 1)*100))
	}
	text += fmt.Sprintf("%d objects, %d denied", p.Objects, p.Denied)
	if s := since.Seconds(); s > 0 {
		text += fmt.Sprintf(", %.0f/s", float64(p.Objects-b.before)/s)
	}
	return text + " " + clipName(line(p.Source))
}

// End takes the line away.
func (b *Bar) End() {
	if b.isBegun {
		_, _ = io.WriteString(b.to, "\r\x1b[K") // as in Show
	}
}
