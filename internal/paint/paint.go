// Package paint has the colours of what is written to terminals.
package paint

import (
	"bytes"
	"io"
	"regexp"
)

// A Colour is the command that makes a terminal write in it.
type Colour string

// The colours.
const (
	None   Colour = ""
	Bold   Colour = "\x1b[1m"
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Faint  Colour = "\x1b[2m"
)

const end = "\x1b[0m"

// Text returns a text in a colour.
func (c Colour) Text(text string) string {
	if c == None {
		return text
	}
	return string(c) + text + end
}

// A Rule says which part of a line has a colour: what the first group of a pattern matches.
type Rule struct {
	Pattern *regexp.Regexp
	Colour  Colour
}

// Lines returns a writer that paints lines and writes them on. The first rule that matches a line paints it. What is
// behind the last line break is not written.
func Lines(to io.Writer, rules []Rule) io.Writer { return &painter{to: to, rules: rules} }

type painter struct {
	to      io.Writer
	rules   []Rule
	waiting []byte // a line whose end has not come
}

// Write implements io.Writer.
func (p *painter) Write(text []byte) (int, error) {
	p.waiting = append(p.waiting, text...)
	for {
		at := bytes.IndexByte(p.waiting, '\n')
		if at < 0 {
			return len(text), nil
		}
		if _, err := p.to.Write(p.paint(p.waiting[:at+1])); err != nil {
			return 0, err
		}
		p.waiting = p.waiting[at+1:]
	}
}

func (p *painter) paint(line []byte) []byte {
	for _, r := range p.rules {
		if at := r.Pattern.FindSubmatchIndex(bytes.TrimSuffix(line, []byte("\n"))); at != nil && at[2] >= 0 {
			painted := r.Colour.Text(string(line[at[2]:at[3]]))
			return append(append(append([]byte{}, line[:at[2]]...), painted...), line[at[3]:]...)
		}
	}
	return line
}
