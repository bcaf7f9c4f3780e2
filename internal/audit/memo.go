package audit

import (
	"slices"
	"time"
	"unsafe"
)

// A memo keeps members of the event before as text, which most events have in common with the one before: who asks for
// what, and the time up to the second. It belongs to one goroutine. A nil memo keeps no member.
type memo struct {
	who      part // from verb to userAgent
	resource part // resource and namespace of the reference
	version  part // apiGroup and apiVersion of the reference
	inForce  part // the annotations of the configuration and the policies
	clock    [len(timeForm)]byte
	second   int64 // of the clock
	ticks    bool  // it was set
}

// maxValues is how many values a part is made of at most, and maxPart how many bytes it keeps.
const maxValues, maxPart = 12, 1 << 10

// A part is the text of some members, and the values that it was made of.
type part struct {
	mark   int               // see is
	number int               // of values
	values [maxValues]string // in room
	room   []byte
	text   []byte
}

// is reports whether the part is made of these values. A mark says how those that are lists are parted.
func (p *part) is(mark int, values []string) bool {
	return len(p.text) > 0 && p.mark == mark && slices.Equal(p.values[:p.number], values)
}

// keep keeps the text that was made of the values, unless it is long.
func (p *part) keep(mark int, values []string, text []byte) {
	p.text, p.room = p.text[:0], p.room[:0]
	if len(text) > maxPart {
		return
	}
	p.mark, p.number, p.text = mark, len(values), append(p.text, text...)
	for _, v := range values {
		p.room = append(p.room, v...)
	}
	rest := p.room
	for i, v := range values {
		p.values[i] = unsafe.String(unsafe.SliceData(rest), len(v))
		rest = rest[len(v):]
	}
}

// appendTime is the function of that name.
func (m *memo) appendTime(to []byte, t time.Time) []byte {
	if m == nil {
		return appendTime(to, t)
	}
	second, from := t.Unix(), len(to)
	if m.ticks && m.second == second {
		to = append(to, m.clock[:]...)
		putMicros(to[from:], t)
		return to
	}
	to = appendTime(to, t)
	if m.ticks = len(to)-from == len(m.clock); m.ticks { // else the year has more than four digits
		copy(m.clock[:], to[from:])
		m.second = second
	}
	return to
}
