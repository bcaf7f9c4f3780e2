// Package compress encodes the answers that the gateway edits, for clients that ask for it (RFC 9110, 12.5.3). Answers
// that are in memory are encoded by fasthttp, with its pools; streams by the encoders that fasthttp uses itself.
package compress

import (
	"bytes"
	"strconv"

	"github.com/admission-gateway/gateway/internal/message"
)

// A Coding is how the bytes of an answer are encoded.
type Coding uint8

// The codings.
const (
	Identity Coding = iota
	Gzip
	Brotli
	Zstd
)

// Headers say these names. Of codings that a client likes equally the last one is taken.
var names = [...]string{Identity: "identity", Gzip: "gzip", Brotli: "br", Zstd: "zstd"}

// String returns the name that headers say.
func (c Coding) String() string { return names[c] }

// The codings that there are for answers in memory, and for streams.
var (
	ForBodies  = []Coding{Gzip, Brotli, Zstd}
	ForStreams = []Coding{Gzip, Brotli, Zstd}
)

// Negotiate returns the coding of an answer: one of the offered that the client likes best, or Identity.
func Negotiate(head *message.Head, offered []Coding) Coding {
	if !head.Has(message.FieldAcceptEncoding) {
		return Identity
	}
	var w weights
	for _, l := range head.Headers() {
		if l.Field == message.FieldAcceptEncoding && !l.Dropped {
			w.read(l.Value)
		}
	}
	best, most := Identity, max(w.said[Identity]-1, 0)
	for _, c := range offered {
		if weight := w.of(c); weight > 0 && weight >= most {
			best, most = c, weight
		}
	}
	return best
}

// weights are how much a client likes each coding: 1 is not at all, 1001 most; 0 is not said.
type weights struct {
	said [len(names)]int
	rest int // of codings that are not named
}

// of returns the weight of a coding in thousandths.
func (w *weights) of(c Coding) int {
	if w.said[c] > 0 {
		return w.said[c] - 1
	}
	return max(w.rest-1, 0)
}

// read reads one line. What has no good weight counts as not acceptable.
func (w *weights) read(value []byte) {
	for one := range bytes.SplitSeq(value, []byte(",")) {
		name, parameters, hasWeight := bytes.Cut(one, []byte(";"))
		weight := 1000
		if hasWeight {
			weight = weightIn(parameters)
		}
		switch name = bytes.ToLower(bytes.TrimSpace(name)); string(name) {
		case "*":
			w.rest = weight + 1
		case "x-gzip": // an old name (RFC 9110, 8.4.1.3)
			w.said[Gzip] = weight + 1
		default:
			for c := range names {
				if string(name) == names[c] {
					w.said[c] = weight + 1
				}
			}
		}
	}
}

// weightIn returns the weight in thousandths.
func weightIn(parameters []byte) int {
	key, value, _ := bytes.Cut(parameters, []byte("="))
	if !bytes.EqualFold(bytes.TrimSpace(key), []byte("q")) {
		return 0
	}
	weight, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
	if err != nil || !(weight >= 0 && weight <= 1) {
		return 0
	}
	return int(weight * 1000)
}
