package contract

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
)

// write writes the values as one JSON object: a member for each place, and in a form one for each field.
func (r *reader) write() {
	r.json = append(r.json, '{')
	for k := range r.parameters {
		p := &r.parameters[k]
		if p.In != InBody && (k == 0 || r.parameters[k-1].In != p.In) {
			if k > 0 {
				r.json = append(r.json, "},"...)
			}
			r.json = append(quote.AppendJSON(r.json, p.In.String()), ":{"...)
		}
		r.parameter(k, p)
	}
	if len(r.parameters) > 0 && r.parameters[0].In != InBody {
		r.json = append(r.json, '}')
	}
	r.json = append(r.json, '}')
}

// parameter writes the value of a parameter, if there is one that can be read.
func (r *reader) parameter(k int, p *Parameter) {
	texts := r.textsOf(k, p)
	if len(texts) == 0 {
		if p.IsRequired {
			r.failures = append(r.failures, &field.Error{Type: field.ErrorTypeRequired, Field: p.path().String(),
				BadValue: ""})
		}
		return
	}
	if p.Style != Simple {
		text, ok := texts[0], false
		if texts, ok = p.appendBare(texts[:0], text); !ok {
			r.fail(spot{p, "", -1}, text, p.styled())
			return
		}
		r.texts = texts
	}
	mark := r.member(p.Name)
	r.in = p.In
	if ok := r.value(p, k, spot{p, "", -1}, texts); !ok {
		r.json = r.json[:mark]
	}
}

// textsOf returns the texts that a request has for a parameter.
func (r *reader) textsOf(k int, p *Parameter) []string {
	r.texts = r.texts[:0]
	for at := range r.found {
		if f := &r.found[at]; f.parameter == k && (!p.MayBeEmpty || f.text != "") {
			r.texts = append(r.texts, f.text)
		}
	}
	return r.texts
}

// member begins a member of an object. It returns the length to cut the member off at again.
func (r *reader) member(name string) (mark int) {
	mark = len(r.json)
	if r.json[mark-1] != '{' {
		r.json = append(r.json, ',')
	}
	r.json = append(quote.AppendJSON(r.json, name), ':')
	return mark
}

// value writes a value; ok is false if a text cannot be read, which is noted.
func (r *reader) value(p *Parameter, k int, at spot, texts []string) (ok bool) {
	switch {
	case p.isScattered():
		return r.scattered(p, k, at)
	case len(texts) > 1 && (p.Shape != List || p.Separator != "" && p.In != InHeader):
		r.fail(at, texts[0], "must be given once")
		return false
	case p.Shape == List:
		return r.list(p, at, texts)
	case p.Shape == Object:
		return r.joined(p, at, texts[0])
	}
	return r.one(p, at, texts[0])
}

// list writes a list of values.
func (r *reader) list(p *Parameter, at spot, texts []string) (ok bool) {
	r.json = append(r.json, '[')
	items := 0
	ok = true
	for _, text := range texts {
		rest, more := text, p.Separator == "" || text != ""
		for more {
			item := rest
			if more = false; p.Separator != "" {
				item, rest, more = cut(rest, p.Separator)
			}
			if items > 0 {
				r.json = append(r.json, ',')
			}
			ok = r.item(p, spot{at.of, at.member, items}, item) && ok
			items++
		}
	}
	r.json = append(r.json, ']')
	return ok
}

// item writes an item of a list.
func (r *reader) item(p *Parameter, at spot, text string) bool {
	if p.Items == JSON {
		return r.inJSON(at, text)
	}
	return r.scalar(p, at, text)
}

// cut cuts a text at the separator, which may be percent-encoded if it is no comma.
func cut(text, separator string) (before, after string, found bool) {
	switch separator {
	case " ":
		if at := strings.IndexByte(text, '+'); at >= 0 && !strings.Contains(text[:at], "%20") {
			return text[:at], text[at+1:], true
		}
		return strings.Cut(text, "%20")
	case "|":
		at, width := strings.IndexByte(text, '|'), 1
		for _, encoded := range [...]string{"%7C", "%7c"} {
			if other := strings.Index(text, encoded); other >= 0 && (at < 0 || other < at) {
				at, width = other, len(encoded)
			}
		}
		if at < 0 {
			return text, "", false
		}
		return text[:at], text[at+width:], true
	}
	before, after, found = strings.Cut(text, separator)
	return before, after, found
}

// one writes the value of one text.
func (r *reader) one(p *Parameter, at spot, text string) bool {
	if p.Shape != JSON {
		return r.scalar(p, at, text)
	}
	return r.inJSON(at, text)
}

// inJSON writes a value that is written in JSON.
func (r *reader) inJSON(at spot, text string) bool {
	text = r.decoded(text)
	d, err := document.Parse([]byte(text), document.Limits{Depth: maxDepth})
	if err != nil {
		r.fail(at, text, "must be JSON that can be read in one way only")
		return false
	}
	d.Release()
	r.json = append(r.json, text...)
	return true
}

// maxDepth bounds the nesting of a value in JSON.
const maxDepth = 32

// scalar writes the value of a text that is no object.
func (r *reader) scalar(p *Parameter, at spot, text string) bool {
	text = r.decoded(text)
	to, ok := p.appendValue(r.json, text)
	if r.json = to; !ok {
		r.fail(at, text, p.expected())
	}
	return ok
}

// scattered writes an object whose members are parameters of their own. Other members of the name are lists.
func (r *reader) scattered(p *Parameter, k int, at spot) (ok bool) {
	r.json = append(r.json, '{')
	var done []string
	for n := range r.found {
		f := &r.found[n]
		if f.parameter != k || slices.Contains(done, f.member) {
			continue
		}
		done = append(done, f.member)
		if len(done) > maxMembers {
			r.fail(at, f.member, "must not have so many members")
			return false
		}
		var texts []string
		for other := n; other < len(r.found); other++ {
			if o := &r.found[other]; o.parameter == k && o.member == f.member {
				texts = append(texts, o.text)
			}
		}
		if mark := len(r.json); !r.memberOf(p, at, f.member, texts) {
			r.json = r.json[:mark] // the others are looked at all the same
		}
	}
	r.json = append(r.json, '}')
	return true
}

// maxMembers bounds how many members of an object are read.
const maxMembers = 256

// memberOf writes a member of an object.
func (r *reader) memberOf(p *Parameter, at spot, name string, texts []string) bool {
	in := spot{p, name, -1}
	if p.Keys == KeysDeep && (name == "" || strings.ContainsAny(name, "[]")) {
		r.fail(at, p.Name+"["+name+"]", "must have members with names, and no objects within them")
		return false
	}
	m := p.member(name)
	r.member(name)
	if m.Shape != List {
		if len(texts) > 1 {
			r.fail(in, texts[0], "must be given once")
			return false
		}
		return r.scalar(m, in, texts[0])
	}
	return r.list(m, in, texts)
}

// joined writes an object whose members are in one text.
func (r *reader) joined(p *Parameter, at spot, text string) (ok bool) {
	r.json = append(r.json, '{')
	ok = true
	var done []string
	for more := text != ""; more; {
		var name, value string
		name, text, more = cut(text, p.Separator)
		if p.Keys == KeysAssigned {
			if name, value, ok = strings.Cut(name, "="); !ok {
				r.fail(at, name, "must have a value for each member, such as name=value")
				return false
			}
		} else {
			if !more {
				r.fail(at, name, "must have a value for each member, such as name"+p.Separator+"value")
				return false
			}
			value, text, more = cut(text, p.Separator)
		}
		name = strings.Clone(r.decoded(name))
		if slices.Contains(done, name) || len(done) == maxMembers {
			r.fail(spot{p, name, -1}, value, "must be given once")
			return false
		}
		done = append(done, name)
		r.member(name)
		ok = r.scalar(p.member(name), spot{p, name, -1}, value) && ok
		if !ok {
			return false
		}
	}
	r.json = append(r.json, '}')
	return ok
}
