package protobuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/quantity"
	"github.com/admission-gateway/gateway/internal/status"
)

// walker goes through a message once, before anything is made of it.
type walker struct {
	depth int
	room
}

// room is the memory that a message may take: two bytes of protobuf can be an object of a kilobyte, and a list has many
// of them.
type room struct {
	objects, text         int64
	mostObjects, mostText int64
}

// roomFor is enough for every message that has as much in it as it is long, and less than 100 times the length.
func roomFor(length int) room {
	return room{mostObjects: 256<<10 + 24*int64(length), mostText: 64<<10 + 5*int64(length)}
}

func (r *room) take(objects, text int64) error {
	r.objects += objects
	r.text += text
	if r.objects > r.mostObjects || r.text > r.mostText {
		return status.RequestEntityTooLarge("the object in the protobuf body must have more in it for as many items")
	}
	return nil
}

// used is about how much memory the message takes as object and as JSON, which is copied once, with what every one
// takes.
func (r *room) used() int64 { return 4<<10 + r.objects + 3*r.text }

// message goes through a message of the shape. An error names the place of the fault in it.
func (w *walker) message(s *shape, data []byte, depth int) error {
	if depth > w.depth {
		return misfitf("messages must be nested at most %d levels deep", w.depth)
	}
	if err := w.take(0, int64(s.blank)); err != nil {
		return err
	}
	var seen [2]uint64 // the fields that may be there once, by number
	for rest := data; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		if n <= 0 {
			return misfitf("ends within a field")
		}
		number := tag >> 3
		f := s.fields[number]
		if f == nil {
			return &misfit{problem: fmt.Sprintf(
				"must not have a field %d, which this version of the gateway does not know", number), isUnknown: true}
		}
		if bit := uint64(1) << (number & 63); !f.repeated {
			if seen[number>>6]&bit != 0 {
				return misfitf("must not have two fields `%s`", f.name)
			}
			seen[number>>6] |= bit
		}
		used, err := w.field(f, byte(tag&7), rest[n:], depth)
		if err != nil {
			return inside(err, f, data[:len(data)-len(rest)], number)
		}
		rest = rest[n+used:]
	}
	return nil
}

// field goes through one value of a field and returns how long it is.
func (w *walker) field(f *field, wire byte, data []byte, depth int) (int, error) {
	if wire == wireBytes && f.wire == wireVarint && f.repeated {
		return w.packed(f, data)
	}
	if wire != f.wire {
		return 0, misfitf("must be of the wire type %d, not %d", f.wire, wire)
	}
	if err := w.take(f.memory, int64(len(f.name)+4)); err != nil {
		return 0, err
	}
	switch wire {
	case wireVarint:
		_, n := binary.Uvarint(data)
		if n <= 0 {
			return 0, misfitf("must be a number that ends")
		}
		return n, w.take(0, 20)
	case wireFixed8:
		if len(data) < 8 {
			return 0, misfitf("must be a number that ends")
		}
		return 8, w.take(0, 24)
	}
	value, n, err := cut(data)
	switch {
	case err != nil:
		return 0, err
	case f.message != nil:
		return n, w.message(f.message, value, depth+1)
	case f.bytes != anyBytes && !utf8.Valid(value):
		return 0, misfitf("must be UTF-8")
	case f.bytes == quantityText && !quantity.Bounded(string(value)):
		return 0, misfitf("must be " + quantity.Bounds)
	}
	return n, w.take(int64(len(value)), escaped(value))
}

// packed goes through a list of numbers that is written as one value.
func (w *walker) packed(f *field, data []byte) (int, error) {
	value, n, err := cut(data)
	for err == nil && len(value) > 0 {
		_, used := binary.Uvarint(value)
		if used <= 0 {
			return 0, misfitf("must be numbers that end")
		}
		value = value[used:]
		err = w.take(f.memory, 20)
	}
	return n, err
}

// cut cuts off a value that has its length before it; n is how long both are.
func cut(data []byte) (value []byte, n int, err error) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return nil, 0, misfitf("must be as long as it says")
	}
	return data[n : n+int(length)], n + int(length), nil
}

// escaped is about how many bytes of JSON a text takes.
func escaped(text []byte) int64 {
	n := int64(len(text)) + int64(len(text))/3 + 2 // as if it were bytes, which become base64
	for _, c := range text {
		if c < 0x20 {
			n += 5
		}
	}
	return n
}

// misfit is a part of a message that does not fit its kind.
type misfit struct {
	path      string
	problem   string
	isUnknown bool // a later version may know it
}

func misfitf(format string, args ...any) error { return &misfit{problem: fmt.Sprintf(format, args...)} }

// Error implements error.
func (m *misfit) Error() string {
	if m.path == "" {
		return "it " + m.problem
	}
	return "`" + m.path + "` " + m.problem
}

// inside adds to a misfit the field of a message that it is in; before is the part of the message
// before it.
func inside(err error, f *field, before []byte, number uint64) error {
	var m *misfit
	if !errors.As(err, &m) {
		return err
	}
	at := f.name
	if f.repeated {
		at += "[" + strconv.Itoa(occurrences(before, number)) + "]"
	}
	if m.path != "" && m.path[0] != '[' {
		at += "."
	}
	m.path = at + m.path
	return m
}

// occurrences is how often a field is in a part of a message that was gone through.
func occurrences(data []byte, number uint64) (times int) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		data = data[n:]
		if tag>>3 == number {
			times++
		}
		switch tag & 7 {
		case wireVarint:
			_, n = binary.Uvarint(data)
		case wireFixed8:
			n = 8
		default:
			_, n, _ = cut(data) // it was cut before
		}
		data = data[n:]
	}
	return times
}
