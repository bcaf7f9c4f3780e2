package protobuf

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shape describes the fields of a message, as the tags of its Go type give them to the generator of
// the code that reads it.
type shape struct {
	fields map[uint64]*field
	blank  int // bytes of JSON of a message with nothing in it
}

// field is a field of a message.
type field struct {
	name     string
	wire     byte // how it is written, a wire type of protobuf
	repeated bool // a list, or a map, whose entries are messages
	bytes    contents
	message  *shape // of what is in it; nil if that is a value
	memory   int64  // of one of them, in bytes
}

// contents says what the bytes of a field have to be.
type contents uint8

const (
	anyBytes contents = iota
	utf8Text
	quantityText // UTF-8 too
)

// The wire types of protobuf that Kubernetes' kinds use.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
)

// maxFields is more than any field's number.
const maxFields = 128

// isMessage reports whether a type is read by a method of its own.
func isMessage(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Unmarshal([]byte) error }]())
}

// shapeOf is the shape of a message, which is made when it is asked for the first time.
func (r *Reader) shapeOf(t reflect.Type) *shape {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shapes == nil {
		r.shapes = make(map[reflect.Type]*shape)
	}
	return r.shape(t)
}

// shape makes the shape of a message and of all messages in it; some have the message itself in them.
func (r *Reader) shape(t reflect.Type) *shape {
	if s := r.shapes[t]; s != nil {
		return s
	}
	s := &shape{fields: map[uint64]*field{}}
	r.shapes[t] = s
	if blank, err := json.Marshal(reflect.New(t).Interface()); err == nil {
		s.blank = len(blank)
	}
	switch {
	case t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.MicroTime]():
		s.fields[1], s.fields[2] = &field{name: "seconds", wire: wireVarint}, &field{name: "nanos", wire: wireVarint}
	case t == reflect.TypeFor[resource.Quantity]():
		s.fields[1] = &field{name: "string", wire: wireBytes, bytes: quantityText}
	case t.Kind() == reflect.Slice: // a named list, which is a message so that it can be the value of a map
		item := r.field("items", t.Elem())
		item.repeated, item.memory = true, listed(item.memory, t.Elem())
		s.fields[1] = item
	case t.Kind() == reflect.Struct:
		r.addFields(s, t)
	}
	return s
}

func (r *Reader) addFields(s *shape, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if number, name, tagged := readTag(f.Tag.Get("protobuf")); tagged {
			s.fields[number] = r.field(name, f.Type)
		}
	}
}

// readTag reads a tag such as `bytes,2,opt,name=spec`. Of the wire type in it the generator takes no notice.
func readTag(tag string) (number uint64, name string, tagged bool) {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0, "", false
	}
	number, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil || number >= maxFields {
		return 0, "", false
	}
	for _, p := range parts[2:] {
		if value, found := strings.CutPrefix(p, "name="); found {
			name = value
		}
	}
	return number, name, true
}

// field is the field of a Go type.
func (r *Reader) field(name string, t reflect.Type) *field {
	f := &field{name: name}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		f.memory = int64(t.Size())
	}
	f.wire = wireOf(t)
	switch {
	case isMessage(t) || t.Kind() == reflect.Struct:
		f.message = r.shape(t)
	case t.Kind() == reflect.Map:
		f.repeated, f.memory = true, 4*int64(t.Key().Size()+t.Elem().Size())
		f.message = &shape{fields: map[uint64]*field{1: r.field("key", t.Key()), 2: r.field("value", t.Elem())},
			blank: 8}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
	case t.Kind() == reflect.Slice:
		f = r.field(name, t.Elem())
		f.repeated, f.memory = true, listed(f.memory, t.Elem())
	case t.Kind() == reflect.String:
		f.bytes = utf8Text
	}
	return f
}

// listed is the memory of an item of a list, as the list is copied when it grows.
func listed(memory int64, t reflect.Type) int64 { return memory + 3*int64(t.Size()) }

// wireOf is how a value is written.
func wireOf(t reflect.Type) byte {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return wireVarint
	case reflect.Float64:
		return wireFixed8
	}
	return wireBytes
}
