package contract

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Form says how a body of fields becomes an object, by the types that a schema gives them.
type Form struct {
	// Fields are in the order in which failures name them.
	Fields []Parameter
	// Parts has for each of the Fields what holds for it in a body of parts.
	Parts []Part
	// Others is for fields that are not named; nil if they are not allowed.
	Others *Parameter
}

// A Part says what a part of a form must be.
type Part struct {
	// Media are the media types, or ranges of them, that the part may have; none is any.
	Media []string
	// IsFile says that the part is a file. Its value is its name, its bytes are not read.
	IsFile bool
	// MinBytes and MaxBytes bound a file; no MaxBytes is no bound.
	MinBytes, MaxBytes int64
}

// errEncoding refuses a form that two servers could read in two ways.
var errEncoding = errors.New("a '%' must be followed by two hexadecimal digits, and ';' must be written as %3B")

// ReadFields makes JSON of an urlencoded form. The failures are of fields; an error concerns the
// body as a whole.
func (f *Form) ReadFields(body []byte) (json []byte, failures field.ErrorList, err error) {
	r := readers.Get().(*reader)
	defer r.release()
	r.parameters = f.Fields
	pairs := pairs{form: f}
	for rest := str(body); rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if pair == "" {
			continue
		}
		if !isEncoded(pair) {
			return nil, nil, errEncoding
		}
		key, value, _ := strings.Cut(pair, "=")
		key = string(r.decode(key, true))
		if !r.find(InBody, key, value) {
			pairs.add(r, key, value)
		}
		if len(r.found)+len(pairs.all) > maxFields {
			return nil, nil, errFields
		}
	}
	return r.form(&pairs)
}

// maxFields bounds how many fields a form has.
const maxFields = 10_000

var errFields = errors.New("must have at most " + strconv.Itoa(maxFields) + " fields")

// isEncoded reports whether a text of a form can be read in one way only.
func isEncoded(text string) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ';', c == '%' && (i+2 >= len(text) || unhex(text[i+1]) < 0 || unhex(text[i+2]) < 0):
			return false
		}
	}
	return true
}

// form writes the object of the fields that were found.
func (r *reader) form(others *pairs) (json []byte, failures field.ErrorList, err error) {
	r.write()
	if len(others.all) > 0 {
		r.json = r.json[:len(r.json)-1]
		r.others(others)
		r.json = append(r.json, '}')
	}
	return slices.Clone(r.json), r.failures, nil
}

// pairs are the fields of a form that the schema does not name.
type pairs struct {
	form *Form
	all  []pair
}

type pair struct{ name, text string }

// add takes a field, or notes that it is not allowed.
func (p *pairs) add(r *reader, name, text string) {
	if p.form.Others == nil {
		r.unknown(name)
		return
	}
	p.all = append(p.all, pair{name, text})
}

// unknown notes a field that is not known. Forms are sent on as they are, so that it cannot be left out.
func (r *reader) unknown(name string) {
	e := &field.Error{Type: field.ErrorTypeForbidden, Field: shown(name), BadValue: "",
		Detail: "must not be set: the form has no such field"}
	if e.Field == "" {
		e.Field = `""`
	}
	if len(r.failures) < maxFailures &&
		!slices.ContainsFunc(r.failures,
			func(other *field.Error) bool { return other.Field == e.Field && other.Type == e.Type }) {
		r.failures = append(r.failures, e)
	}
}

// others writes the fields that the schema does not name.
func (r *reader) others(p *pairs) {
	r.in = InBody
	done := map[string]bool{}
	for n, one := range p.all {
		if done[one.name] {
			continue
		}
		done[one.name] = true
		texts := []string{one.text}
		for _, other := range p.all[n+1:] {
			if p.form.Others.Shape == List && other.name == one.name {
				texts = append(texts, other.text)
			} else if other.name == one.name {
				r.failures = append(r.failures, field.Invalid(field.NewPath(shown(one.name)), shown(other.text),
					"must be given once"))
				return
			}
		}
		as := *p.form.Others
		as.In, as.Name = InBody, one.name
		mark := r.member(one.name)
		if !r.value(&as, -1, spot{&as, "", -1}, texts) {
			r.json = r.json[:mark]
		}
	}
}
