package manifest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Decoder decodes objects into Go types strictly.
type Decoder struct {
	// Inside says which type is behind one that decodes itself (a json.Unmarshaler that takes several forms), given
	// that the value is an object or an array, so that its members are checked too. It may be nil; false leaves
	// the check to the type's own method.
	Inside func(t reflect.Type, isObject bool) (reflect.Type, bool)
	// Elsewhere tells of a member that the type does not have whether it is read elsewhere. It may be nil.
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
	at, line := o.root, o.line
	for rest := path; rest != ""; {
		m, after, ok := at.step(rest)
		if !ok {
			return nil // nothing is there, so everything keeps what it has
		}
		at, line, rest = m.value, m.line, after
	}
	c := &checker{Decoder: d, file: o.File}
	c.value(at, reflect.TypeOf(into).Elem(), path, line)
	if c.failed {
		return c.errs
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(at.appendJSON(nil), into); err != nil {
		c.fail(line, path, "must be decodable: %v", err)
	}
	return c.errs
}

// checker compares values with the Go types that they are for.
type checker struct {
	Decoder
	file   string
	errs   []*Error
	failed bool // an error is no warning
}

func (c *checker) fail(line int, path, format string, args ...any) {
	c.failed = true
	c.errs = append(c.errs, &Error{File: c.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (c *checker) unknown(line int, path, hint string) {
	c.failed = c.failed || !c.WarnUnknown
	c.errs = append(c.errs, &Error{File: c.file, Line: line, Path: path, Msg: "unknown field" + hint, Warning: c.WarnUnknown})
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (c *checker) value(v *value, t reflect.Type, path string, line int) {
	if v.kind == other && v.text == "null" {
		return // as if it were left out
	}
	if t.Kind() == reflect.Pointer {
		c.value(v, t.Elem(), path, line)
		return
	}
	if reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler) {
		c.own(v, t, path, line)
		return
	}
	switch t.Kind() {
	case reflect.Interface:
	case reflect.Struct:
		if c.is(v, object, "an object", path, line) {
			c.fields(v, t, path)
		}
	case reflect.Map:
		if c.is(v, object, "an object", path, line) {
			for _, m := range v.members {
				c.value(m.value, t.Elem(), childPath(path, m.key), m.line)
			}
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			if c.is(v, str, "a string", path, line) {
				c.own(v, t, path, line) // base64
			}
		} else if c.is(v, array, "a list", path, line) {
			for i, m := range v.members {
				c.value(m.value, t.Elem(), path+"["+strconv.Itoa(i)+"]", m.line)
			}
		}
	case reflect.String:
		c.text(v, path, line)
	default:
		c.scalar(v, t, path, line)
	}
}

// own leaves the check to the type's own way of decoding, or checks the type behind it.
func (c *checker) own(v *value, t reflect.Type, path string, line int) {
	if c.Inside != nil && (v.kind == object || v.kind == array) {
		if behind, ok := c.Inside(t, v.kind == object); ok {
			c.value(v, behind, path, line)
			return
		}
	}
	if err := json.Unmarshal(v.appendJSON(nil), reflect.New(t).Interface()); err != nil {
		msg := err.Error()
		if !strings.HasPrefix(msg, "must ") {
			msg = "must be valid: " + msg
		}
		c.fail(line, path, "%s", msg)
	}
}

// text takes a string. A plain 'y' or 'n' is meant for one, though YAML 1.1 makes a boolean of it: most writers of YAML
// know nothing of that.
func (c *checker) text(v *value, path string, line int) {
	if v.letter != "" && v.kind == other {
		c.errs = append(c.errs, &Error{
			File: c.file, Line: line, Path: path, Warning: true,
			Msg: fmt.Sprintf("must be in quotes: '%s' is read as text here, where kubectl reads '%s', as YAML 1.1 has it", v.letter, v.text),
		})
		v.kind, v.text = str, v.letter
	}
	c.is(v, str, "a string", path, line)
}

func (c *checker) is(v *value, want kind, name, path string, line int) bool {
	if v.kind == want {
		return true
	}
	c.fail(line, path, "must be %s, not %s", name, v.describe())
	return false
}

func (v *value) describe() string {
	switch {
	case v.kind == object:
		return "an object"
	case v.kind == array:
		return "a list"
	case v.kind == str:
		return "a string"
	case v.text == "true" || v.text == "false":
		return "a boolean"
	default:
		return "the number " + v.text
	}
}

func (c *checker) scalar(v *value, t reflect.Type, path string, line int) {
	isBool := v.kind == other && (v.text == "true" || v.text == "false")
	isNumber := v.kind == other && !isBool
	var err error
	want := ""
	switch t.Kind() {
	case reflect.Bool:
		if !isBool {
			want = "a boolean"
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if want = "an integer"; isNumber {
			if _, err = strconv.ParseInt(v.text, 10, t.Bits()); err == nil {
				want = ""
			} else if _, wide := strconv.ParseInt(v.text, 10, 64); wide == nil {
				want = fmt.Sprintf("an integer of %d bits", t.Bits())
			}
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if want = "an integer that is not negative"; isNumber {
			if _, err = strconv.ParseUint(v.text, 10, t.Bits()); err == nil {
				want = ""
			}
		}
	case reflect.Float32, reflect.Float64:
		if want = "a number"; isNumber {
			if _, err = strconv.ParseFloat(v.text, t.Bits()); err == nil {
				want = ""
			}
		}
	}
	if want != "" {
		c.fail(line, path, "must be %s, not %s", want, v.describe())
	}
}

func (c *checker) fields(v *value, t reflect.Type, path string) {
	known := map[string]reflect.Type{}
	collectFields(t, known)
	for _, m := range v.members {
		memberPath := childPath(path, m.key)
		field, ok := known[m.key]
		if !ok && c.Elsewhere != nil && c.Elsewhere(t, m.key) {
			continue
		}
		if !ok {
			c.unknown(m.line, memberPath, suggestion(m.key, known))
			continue
		}
		c.value(m.value, field, memberPath, m.line)
	}
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

// suggestion proposes the known field that the author may have meant. People get the first letter right, and leave units
// out, as in 'period' for 'periodSeconds'.
func suggestion(key string, known map[string]reflect.Type) string {
	const limit, minAbbreviation = 2, 4
	best, bestScore := "", 2*limit+2
	for name := range known {
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
