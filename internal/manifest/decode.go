package manifest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/admission-gateway/gateway/internal/document"
	kjson "sigs.k8s.io/json"
)

// Decoder decodes objects into Go types strictly.
type Decoder struct {
	// Inside says which type is behind one that decodes itself (a json.Unmarshaler that takes several forms), given
	// that the value is an object or an array, so that its members are checked too. It may be nil; false leaves
	// the check to the type's own method.
	Inside func(t reflect.Type, isObject bool) (reflect.Type, bool)
	// Elsewhere reports whether a member that the type does not have is read elsewhere. It may be
	// nil.
	Elsewhere func(t reflect.Type, key string) bool
	// WarnUnknown makes warnings of unknown fields, which are then left out.
	WarnUnknown bool
}

// Decode decodes o into the value that into points to and names everything that does not fit: fields that the type
// does not have, in the exact spelling, and values of another type. Members that the file leaves out keep what into
// holds. Nothing is decoded after an error.
func (d Decoder) Decode(o *Object, into any) []*Error { return d.DecodeAt(o, "", into) }

// DecodeAt decodes the value at a field path of o as Decode does for the whole. The paths of errors are those
// within o.
func (d Decoder) DecodeAt(o *Object, path string, into any) []*Error {
	at, found := o.At(path)
	if !found {
		return nil // so everything keeps what it has
	}
	c := &checker{Decoder: d, object: o}
	c.value(at, reflect.TypeOf(into).Elem(), path)
	if c.failed {
		return c.errs
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.raw(at), into); err != nil {
		c.fail(at, path, "must be decodable: %v", err)
	}
	return c.errs
}

// Check is Decode that decodes nothing: into points to a value of the type.
func (d Decoder) Check(o *Object, into any) []*Error {
	c := &checker{Decoder: d, object: o}
	c.value(o.Document().Root(), reflect.TypeOf(into).Elem(), "")
	return c.errs
}

// raw is the JSON of a value of the object, with those letters as strings that were taken for text.
func (o *Object) raw(n document.Node) []byte {
	raw := n.Raw()
	start := o.valueOffset(n)
	end := start
	var out []byte
	for _, l := range o.places.lettersFrom(start) {
		if at := int(l.offset); l.isText && at < start+len(raw) {
			out = append(append(out, o.JSON[end:at]...), '"', l.char, '"')
			end = at + len("true")
			if o.JSON[at] == 'f' {
				end = at + len("false")
			}
		}
	}
	if end == start {
		return raw
	}
	return append(out, raw[end-start:]...)
}

// valueOffset is the offset of a value in the JSON, which is compact, behind the key of a member.
func (o *Object) valueOffset(n document.Node) int {
	offset, _ := n.Offset()
	if n.Parent().Kind() == document.Object {
		offset += len(document.AppendString(nil, n.Key())) + len(":")
	}
	return offset
}

// checker compares values with the Go types that they are for.
type checker struct {
	Decoder
	object *Object
	errs   []*Error
	failed bool // an error is no warning
}

func (c *checker) at(n document.Node, path, format string, args ...any) *Error {
	at := c.object.position(n)
	return &Error{File: c.object.File, Line: at.line, Column: at.column, Path: path, Msg: fmt.Sprintf(format, args...)}
}

func (c *checker) fail(n document.Node, path, format string, args ...any) {
	c.failed = true
	c.errs = append(c.errs, c.at(n, path, format, args...))
}

func (c *checker) warn(n document.Node, path, format string, args ...any) {
	e := c.at(n, path, format, args...)
	e.Warning = true
	c.errs = append(c.errs, e)
}

func (c *checker) unknown(n document.Node, path, hint string) {
	if c.WarnUnknown {
		c.warn(n, path, "unknown field%s", hint)
		return
	}
	c.fail(n, path, "unknown field%s", hint)
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (c *checker) value(n document.Node, t reflect.Type, path string) {
	if n.Kind() == document.Null {
		return // as if it were left out
	}
	if t.Kind() == reflect.Pointer {
		c.value(n, t.Elem(), path)
		return
	}
	if reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler) {
		c.own(n, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Interface:
	case reflect.Struct:
		if c.is(n, document.Object, "an object", path) {
			c.fields(n, t, path)
		}
	case reflect.Map:
		if c.is(n, document.Object, "an object", path) {
			for m := n.First(); m.Valid(); m = m.Next() {
				c.value(m, t.Elem(), childPath(path, m.Key()))
			}
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			if c.is(n, document.String, "a string", path) {
				c.own(n, t, path) // base64
			}
		} else if c.is(n, document.Array, "a list", path) {
			i := 0
			for m := n.First(); m.Valid(); m = m.Next() {
				c.value(m, t.Elem(), path+"["+strconv.Itoa(i)+"]")
				i++
			}
		}
	case reflect.String:
		c.text(n, path)
	default:
		c.scalar(n, t, path)
	}
}

// own leaves the check to the type's own way of decoding, or checks the type behind it.
func (c *checker) own(n document.Node, t reflect.Type, path string) {
	if c.Inside != nil && n.Kind() >= document.Object {
		if behind, ok := c.Inside(t, n.Kind() == document.Object); ok {
			c.value(n, behind, path)
			return
		}
	}
	if err := json.Unmarshal(c.object.raw(n), reflect.New(t).Interface()); err != nil {
		msg := err.Error()
		if !strings.HasPrefix(msg, "must ") {
			msg = "must be valid: " + msg
		}
		c.fail(n, path, "%s", msg)
	}
}

// text takes a string. A plain 'y' or 'n' is meant for one, though YAML 1.1 makes a boolean of it: most writers of YAML
// know nothing of that.
func (c *checker) text(n document.Node, path string) {
	if l := c.object.letterOf(n); l != nil {
		if !l.isText {
			c.warn(n, path, "must be in quotes: '%c' is read as text here, where kubectl reads '%s', as YAML 1.1 has it", l.char, n.Raw())
			l.isText = true
		}
		return
	}
	c.is(n, document.String, "a string", path)
}

// letterOf returns the letter that a boolean is written as, nil if it is not.
func (o *Object) letterOf(n document.Node) *letter {
	if n.Kind() != document.Bool || len(o.places.letters) == 0 {
		return nil
	}
	return o.places.letterAt(o.valueOffset(n))
}

func (c *checker) is(n document.Node, want document.Kind, name, path string) bool {
	if n.Kind() == want {
		return true
	}
	c.fail(n, path, "must be %s, not %s", name, article(n))
	return false
}

// article returns what a value is, in words.
func article(n document.Node) string {
	if n.Kind() == document.Number {
		return "the number " + string(n.Raw())
	}
	return n.Kind().WithArticle()
}

func (c *checker) scalar(n document.Node, t reflect.Type, path string) {
	isBool, isNumber := n.Kind() == document.Bool, n.Kind() == document.Number
	text := string(n.Raw())
	var err error
	want := ""
	switch t.Kind() {
	case reflect.Bool:
		if !isBool {
			want = "a boolean"
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if want = "an integer"; isNumber {
			if _, err = strconv.ParseInt(text, 10, t.Bits()); err == nil {
				want = ""
			} else if _, wide := strconv.ParseInt(text, 10, 64); wide == nil {
				want = fmt.Sprintf("an integer of %d bits", t.Bits())
			}
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if want = "an integer that is not negative"; isNumber {
			if _, err = strconv.ParseUint(text, 10, t.Bits()); err == nil {
				want = ""
			}
		}
	case reflect.Float32, reflect.Float64:
		if want = "a number"; isNumber {
			if _, err = strconv.ParseFloat(text, t.Bits()); err == nil {
				want = ""
			}
		}
	}
	if want != "" {
		c.fail(n, path, "must be %s, not %s", want, article(n))
	}
}

func (c *checker) fields(n document.Node, t reflect.Type, path string) {
	known := fieldsOf(t)
	for m := n.First(); m.Valid(); m = m.Next() {
		key := m.Key()
		memberPath := childPath(path, key)
		field, ok := known[key]
		if !ok && c.Elsewhere != nil && c.Elsewhere(t, key) {
			continue
		}
		if !ok {
			c.unknown(m, memberPath, suggestion(key, known))
			continue
		}
		c.value(m, field, memberPath)
	}
}

// knownFields has what fieldsOf returned. It grows with the types of the program alone.
var knownFields sync.Map

// fieldsOf returns the types of a struct's fields by their JSON names.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, found := knownFields.Load(t); found {
		return known.(map[string]reflect.Type)
	}
	known := map[string]reflect.Type{}
	collectFields(t, known)
	knownFields.Store(t, known)
	return known
}

// collectFields adds the JSON names of a struct's fields, embedded structs included.
func collectFields(t reflect.Type, known map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && options == "", !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous:
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			collectFields(embedded, known)
		case name == "":
			known[f.Name] = f.Type
		default:
			known[name] = f.Type
		}
	}
}

// suggestion proposes the known field that the author may have meant.
func suggestion(key string, known map[string]reflect.Type) string {
	return Suggest(key, maps.Keys(known))
}

// Suggest returns the end of a message that proposes the known name that the author may have meant; "" if none is like
// it. People get the first letter right, and leave units out, as in 'period' for 'periodSeconds'.
func Suggest(key string, known iter.Seq[string]) string {
	const limit, minAbbreviation = 2, 4
	best, bestScore := "", 2*limit+2
	for name := range known {
		if name == key {
			continue // it is known, only not here
		}
		short, long := strings.ToLower(key), strings.ToLower(name)
		d := distance(short, long, limit)
		if len(short) >= minAbbreviation && strings.HasPrefix(long, short) {
			d = min(d, limit)
		}
		if d > limit || 2*d > len(key) {
			continue
		}
		score := 2 * d
		if key == "" || !strings.EqualFold(key[:1], name[:1]) {
			score++
		}
		if score < bestScore || score == bestScore && name < best {
			best, bestScore = name, score
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean `" + best + "`?"
}

// distance is the Levenshtein distance of two strings; anything above limit may be reported as limit+1.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
