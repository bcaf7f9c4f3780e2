package cbor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/status"
)

// The major types of CBOR (RFC 8949).
const (
	unsigned = iota
	negative
	byteString
	textString
	array
	object
	tag
	simple
)

const (
	indefinite = 31   // in place of a length: up to a break
	breakByte  = 0xff // ends what has no length

	// The tags of byte strings that stand for text in base64url, base64 or base16.
	firstEncoding, lastEncoding = 21, 23
)

// selfDescribed is the tag that all bodies of Kubernetes' clients begin with. It says nothing of what is in it.
var selfDescribed = []byte{0xd9, 0xd9, 0xf7}

// A walker goes through a body once, before anything is made of it. The decoder finds out the rest.
type walker struct {
	data    []byte // that was not gone through
	depth   int
	objects int64 // bytes of memory for the decoded body
	text    int64 // bytes of JSON
	most    int64
}

// used is about how much memory the body takes as an object and as JSON, which is copied once.
func (w *walker) used() int64 { return 4<<10 + w.objects + 3*w.text }

// take counts memory. A few bytes of CBOR can be large objects.
func (w *walker) take(objects, text int64) error {
	w.objects += objects
	w.text += text
	if w.objects+w.text > w.most {
		return status.RequestEntityTooLarge("the object in the CBOR body must have more in it for as many items")
	}
	return nil
}

// document goes through the whole body.
func (w *walker) document() error {
	w.most = 256<<10 + 48*int64(len(w.data))
	w.data = bytes.TrimPrefix(w.data, selfDescribed)
	if err := w.value(1); err != nil {
		return err
	}
	if len(w.data) > 0 {
		return unreadable("it must end after the first value")
	}
	return nil
}

// head reads the type of a value with the number behind it: the value itself, a length, or the number of a tag.
func (w *walker) head() (major byte, n uint64, isIndefinite bool, err error) {
	if len(w.data) == 0 {
		return 0, 0, false, errEnds
	}
	major, info := w.data[0]>>5, w.data[0]&31
	w.data = w.data[1:]
	size := 0
	switch {
	case info < 24:
		return major, uint64(info), false, nil
	case info < 28:
		size = 1 << (info - 24)
	case info == indefinite && major >= byteString && major <= object:
		return major, 0, true, nil
	default:
		return 0, 0, false, unreadable("it has a value of no type")
	}
	if len(w.data) < size {
		return 0, 0, false, errEnds
	}
	var number [8]byte
	copy(number[8-size:], w.data)
	w.data = w.data[size:]
	return major, binary.BigEndian.Uint64(number[:]), false, nil
}

var errEnds = unreadable("it ends within a value")

// isBreak reports whether a value without a length ends here, and steps over the break.
func (w *walker) isBreak() bool {
	if len(w.data) == 0 || w.data[0] != breakByte {
		return false
	}
	w.data = w.data[1:]
	return true
}

// value goes through one value.
func (w *walker) value(depth int) error {
	if depth > w.depth {
		return unreadable(fmt.Sprintf("values must be nested at most %d levels deep", w.depth))
	}
	major, n, isIndefinite, err := w.head()
	if err != nil {
		return err
	}
	switch major {
	case unsigned, negative:
		if n > math.MaxInt64 {
			return unreadable("whole numbers must have at most 64 bits with their sign")
		}
		return w.take(24, 21)
	case byteString, textString:
		return w.chunks(major, n, isIndefinite, true)
	case array:
		return w.items(n, isIndefinite, depth)
	case object:
		return w.members(n, isIndefinite, depth)
	case tag:
		return w.encoded(n)
	}
	return w.take(24, 26) // a number with a fraction, true, false or null; the decoder refuses everything else
}

// items goes through an array.
func (w *walker) items(n uint64, isIndefinite bool, depth int) error {
	if err := w.take(48, 2); err != nil {
		return err
	}
	for ; isIndefinite || n > 0; n-- {
		if isIndefinite && w.isBreak() {
			return nil
		}
		if err := w.take(16, 1); err != nil {
			return err
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// members goes through a map. Its keys are plain strings: readers differ in how they read others.
func (w *walker) members(n uint64, isIndefinite bool, depth int) error {
	if err := w.take(64, 2); err != nil {
		return err
	}
	for i := 0; isIndefinite || n > 0; i, n = i+1, n-1 {
		if isIndefinite && w.isBreak() {
			return nil
		}
		if i%8 == 0 { // maps have room for eight at a time
			if err := w.take(320, 0); err != nil {
				return err
			}
		}
		major, length, isParted, err := w.head()
		if err != nil {
			return err
		}
		if major != byteString && major != textString || isParted {
			return unreadable("the keys of maps must be strings of a known length, without a tag")
		}
		if err := w.chunks(major, length, false, true); err != nil {
			return err
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// encoded goes through a byte string with a tag, which stands for text.
func (w *walker) encoded(number uint64) error {
	if number < firstEncoding || number > lastEncoding {
		return unreadable(fmt.Sprintf("it must not have a tag %d", number))
	}
	major, n, isIndefinite, err := w.head()
	if err != nil {
		return err
	}
	if major != byteString {
		return unreadable(fmt.Sprintf("the tag %d must be of a byte string", number))
	}
	return w.chunks(major, n, isIndefinite, false)
}

// chunks goes through a string. One without a length is of several that have one.
func (w *walker) chunks(major byte, n uint64, isIndefinite, isText bool) error {
	if !isIndefinite {
		return w.chunk(n, isText)
	}
	for !w.isBreak() {
		part, n, isIndefinite, err := w.head()
		if err != nil {
			return err
		}
		if part != major || isIndefinite {
			return unreadable("a string must be of strings of its own type")
		}
		if err := w.chunk(n, isText); err != nil {
			return err
		}
	}
	return nil
}

// chunk goes through the bytes of a string.
func (w *walker) chunk(n uint64, isText bool) error {
	if n > uint64(len(w.data)) {
		return errEnds
	}
	text := w.data[:n]
	w.data = w.data[n:]
	if !isText {
		return w.take(32+2*int64(n), 2*int64(n)+4)
	}
	if !utf8.Valid(text) {
		return unreadable("strings must be UTF-8")
	}
	escaped := int64(n) + 3
	for _, c := range text {
		if c < 0x20 {
			escaped += 5
		}
	}
	return w.take(32+int64(n), escaped)
}
