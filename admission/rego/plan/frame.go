package plan

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// A frame has the documents that steps see, and the values that rules have for them. The first
// frame of an evaluation has the documents as they are; a step with makes another one.
type frame struct {
	outer   *frame // the one around with; nil: this is the first one
	docs    []document
	base    map[string]ast.Value // what was read of the document data, by its path
	whole   *ast.Term            // the document input, once a step asked for all of it
	outline *ast.Term            // of the document input, once OPA's index asked for it
	// isReplaced says that whole stands for the input, even if it is nil.
	isReplaced bool
	// data is laid over the document data. What a target is a prefix of, it replaces.
	data    *ast.Term
	targets []ast.Ref
}

// clear forgets what the frame has, but for its room.
func (f *frame) clear() {
	clear(f.docs)
	clear(f.base)
	*f = frame{docs: f.docs, base: f.base}
}

// input returns the document input; nil if there is none.
func (m *machine) input() *ast.Term {
	f := m.frame
	if f.whole == nil && !f.isReplaced {
		f.whole = m.env.Documents.Whole()
	}
	return f.whole
}

// inputOutline returns an outline of the document input; nil if there is none.
func (m *machine) inputOutline() *ast.Term {
	f := m.frame
	if f.whole != nil || f.isReplaced {
		return f.whole
	}
	if f.outline == nil {
		f.outline = m.env.Documents.Outline()
	}
	return f.outline
}

// inputMember returns a member of the document input; no value if there is none.
func (m *machine) inputMember(name *ast.Term) Value {
	if f := m.frame; f.isReplaced {
		if f.whole == nil {
			return Value{}
		}
		return memberOf(f.whole.Value, Made(name))
	}
	return m.env.Documents.Member(string(name.Value.(ast.String)))
}

// read returns a part of the document data; nil if there is none, or if m.err says why.
func (m *machine) read(ref ast.Ref, path storage.Path, name string) ast.Value {
	f := m.frame
	if v, ok := f.base[name]; ok {
		return v
	}
	v := m.readAnew(ref, path)
	if m.err != nil {
		return nil
	}
	if f.base == nil {
		f.base = map[string]ast.Value{}
	}
	f.base[name] = v
	return v
}

func (m *machine) readAnew(ref ast.Ref, path storage.Path) ast.Value {
	f := m.frame
	var over ast.Value
	if f.data != nil {
		over, _ = f.data.Value.Find(ref[1:])
	}
	if slices.ContainsFunc(f.targets, ref.HasPrefix) {
		return over
	}
	v, err := m.env.Documents.Data(path)
	if err != nil && !storage.IsNotFound(err) {
		m.err = err
		return nil
	}
	switch {
	case over == nil && err != nil:
		return nil
	case over == nil:
		return v
	case err != nil:
		return over
	}
	return laidOver(over, v)
}

// laidOver returns a value with the members that only the other one has, if both are objects.
func laidOver(over, under ast.Value) ast.Value {
	a, ok := over.(ast.Object)
	b, alike := under.(ast.Object)
	if !ok || !alike {
		return over
	}
	merged, _ := b.MergeWith(a, func(under, over *ast.Term) (*ast.Term, bool) {
		return ast.NewTerm(laidOver(over.Value, under.Value)), false
	})
	return merged
}

// A document has the value of a ruleset in an evaluation.
type document struct {
	value    Value
	known    bool // value is final: it has been evaluated
	early    bool // one value is enough
	produced bool // the clause that runs has a value
	calls    int
	cache    map[int][]cached // by the hash of the arguments, or of the key
	set      elements
	object   ast.Object
}

// A cached is the value for arguments, or for a key.
type cached struct {
	of    []Value
	value Value
}

// kept returns a cached value; none if there is none.
func (d *document) kept(hash int, of ...Value) Value {
	for _, c := range d.cache[hash] {
		alike := true
		for i := range of {
			alike = alike && c.of[i].isSame(of[i])
		}
		if alike {
			return c.value
		}
	}
	return Value{}
}

func (d *document) keep(hash int, value Value, of ...Value) {
	if d.cache == nil {
		d.cache = map[int][]cached{}
	}
	d.cache[hash] = append(d.cache[hash], cached{append([]Value(nil), of...), value})
}
