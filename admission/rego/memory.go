package rego

import (
	"errors"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// Memory is who is asked for the memory that a request's values and evaluations take, and for leave
// to do much work. All requests share it.
type Memory = value.Memory

// ErrNoMemory is the error if that is refused.
var ErrNoMemory = errors.New("operation cancelled: there is no memory, or no time, for it now")

const (
	// freeBytes are never asked for, and askBytes are asked for at a time.
	freeBytes = 4 << 10
	askBytes  = 64 << 10
	// An evaluation that takes more than heavyBytes is heavy work: some milliseconds.
	heavyBytes = 2 << 20
)

// A meter asks for memory as it is taken. The zero meter has no bound.
type meter struct {
	memory  Memory
	used    int64
	granted int64 // beyond freeBytes
	refused bool
}

// take counts bytes, and reports whether they may be taken.
func (m *meter) take(bytes int64) bool {
	m.used += bytes
	missing := m.used - freeBytes - m.granted
	if missing <= 0 || m.memory == nil {
		return true
	}
	if m.refused {
		return false
	}
	more := (missing + askBytes - 1) / askBytes * askBytes
	if !m.memory.Grow(int(more)) {
		m.refused = true
		return false
	}
	m.granted += more
	return true
}

// has reports whether bytes may be taken without a question.
func (m *meter) has(bytes int64) bool { return m.used+bytes <= freeBytes+m.granted }

// give counts bytes that are free again. What was granted for them stays for the next ones.
func (m *meter) give(bytes int64) { m.used -= bytes }

// close gives back what was granted.
func (m *meter) close() {
	if m.granted > 0 {
		m.memory.Shrink(int(m.granted))
	}
	m.used, m.granted = 0, 0
}

// What OPA's parser makes of a module takes so much by measurement, at most: for each token, and for each byte.
const (
	tokenBytes  = 640
	sourceBytes = 2
)

// ParseWeight returns how much memory it takes to parse a module, at most. Words in strings and
// comments count as if they were its own: only a parser knows their ends.
func ParseWeight(source []byte) int {
	tokens, inWord := 0, false
	for _, c := range source {
		isWord := c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
		if !isWord && c != ' ' && c != '\t' && c != '\r' || isWord && !inWord {
			tokens++
		}
		inWord = isWord
	}
	return tokens*tokenBytes + len(source)*sourceBytes
}

// DataWeight returns how much memory the values of a text in JSON or YAML take, at most: each of them but the first
// stands behind one of a few characters.
func DataWeight(text []byte) int {
	weight := len(text) + containerBytes
	for _, c := range text {
		switch c {
		case '[', '{':
			weight += containerBytes + memberBytes
		case ',', ':', '-', '?', '\n':
			weight += memberBytes
		}
	}
	return weight
}
