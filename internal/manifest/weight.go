package manifest

import (
	"bytes"

	"github.com/admission-gateway/gateway/internal/document"
)

// What it takes to read a file, by measurement, at most: for each key and value, for each line, which may be a comment,
// and for each byte. JSON takes less.
const (
	yamlValueBytes = 192
	yamlLineBytes  = 96
	yamlByteBytes  = 6

	jsonValueBytes = 48
	jsonByteBytes  = 8
)

// Weight returns how much memory it takes to read a file, at most, aside from what its aliases repeat.
func Weight(data []byte) int {
	if looksLikeJSON(data) {
		return items(data)*jsonValueBytes + len(data)*jsonByteBytes
	}
	return items(data)*yamlValueBytes + bytes.Count(data, []byte("\n"))*yamlLineBytes + len(data)*yamlByteBytes
}

// What an object takes that was read, by measurement, at most: for itself, for each key and value, and for each byte of
// its JSON.
const (
	objectBytes      = 8 << 10
	objectValueBytes = 28
	objectByteBytes  = 3
)

func objectWeight(json []byte) int {
	return objectBytes + items(json)*objectValueBytes + len(json)*objectByteBytes
}

// memoryClaim is what was asked for to read a file. Its objects take a part of it, or more if they are many and small.
type memoryClaim struct {
	memory      document.Memory // nil means no bound
	asked, kept int
}

// grow asks for as much as there may be in all. It reports whether it may be taken.
func (h *memoryClaim) grow(bytes int) bool {
	if more := bytes - h.asked; h.memory != nil && more > 0 {
		if !h.memory.Grow(more) {
			return false
		}
		h.asked = bytes
	}
	return true
}

// keep notes what an object takes.
func (h *memoryClaim) keep(bytes int) bool {
	h.kept += bytes
	return h.grow(h.kept)
}

// releaseUnused gives back all but what the objects take.
func (h *memoryClaim) releaseUnused() {
	if surplus := h.asked - h.kept; h.memory != nil && surplus > 0 {
		h.memory.Shrink(surplus)
		h.asked = h.kept
	}
}

func looksLikeJSON(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '{'
}

// items is at least how many keys and values there can be in a document, as far as they take memory: each of them
// stands beside one of these characters.
func items(data []byte) (n int) {
	before := byte('\n')
	for i, c := range data {
		switch c {
		case ',':
			n += 2
		case '[', '{':
			n++
		case ':':
			if i+1 == len(data) || isSpace(data[i+1]) || before == '"' || before == '\'' {
				n += 2
			}
		case '-', '?':
			if isSpace(before) {
				n++
			}
		}
		before = c
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
