package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/document"
)

// A built list is one that an expression made. Its items do not change once it is made.
type built struct {
	vals []val
	made ref.Val // the list as cel-go has it: of a literal, and of a policy's variable once it was asked for
	kept bool    // it is a policy's variable
}

func (b *built) ref(f *Frame) ref.Val {
	if b.made != nil {
		return b.made
	}
	f.charge(int64(len(b.vals)) / bytesPerUnit)
	f.hold(len(b.vals) * refBytes)
	vals := make([]ref.Val, len(b.vals))
	for i, v := range b.vals {
		vals[i] = f.ref(v)
	}
	list := types.NewRefValList(types.DefaultTypeAdapter, vals)
	if b.kept {
		b.made = list
		f.retained++ // the items are of this evaluation
	}
	return list
}

// Units and bytes that lists and maps cost: the units are Kubernetes'.
const (
	listUnits   = 10
	mapUnits    = 30
	structUnits = 40

	valBytes   = 64  // of an item of a built list
	refBytes   = 32  // of an item of a list of cel-go's
	entryBytes = 128 // of a member of a map
)

// push puts a value on the stack, where lists are made.
func (f *Frame) push(v val) { f.stack = append(f.stack, v) }

// newBuilt makes a list of what was put on the stack since the mark.
func (f *Frame) newBuilt(mark int) val {
	f.use()
	b := f.builts.take()
	f.hold((len(f.stack) - mark) * valBytes)
	b.vals = f.cells.takeAll(f.stack[mark:])
	f.stack = f.stack[:mark]
	return listVal(b)
}

// list compiles a list that is written out.
func (c *nativeCompiler) list(e celast.Expr) code {
	l := e.AsList()
	parts := c.values(l.Elements())
	optional := make([]bool, len(parts))
	for _, i := range l.OptionalIndices() {
		optional[i] = true
	}
	if fixed, ok := literalList(parts); ok && len(l.OptionalIndices()) == 0 {
		return fixed
	}
	items := make([]expr, len(parts))
	for i, part := range parts {
		items[i] = part.settled()
	}
	return code{eval: func(f *Frame) val {
		f.charge(listUnits)
		mark := len(f.stack)
		for i, item := range items {
			v := item(f)
			if optional[i] && v.kind != valErr {
				o, ok := v.optional()
				switch {
				case !ok:
					v = errVal(types.NewErr("cannot initialize optional list element from non-optional value %v", f.ref(v)))
				case !o.HasValue():
					continue
				default:
					v = f.of(o.GetValue())
				}
			}
			if v.kind == valErr {
				f.stack = f.stack[:mark]
				return v
			}
			f.push(v)
		}
		return f.newBuilt(mark)
	}}
}

// literalList is a list of literals, made when the expression is compiled.
func literalList(parts []code) (code, bool) {
	b := &built{vals: make([]val, len(parts))}
	vals := make([]ref.Val, len(parts))
	for i, part := range parts {
		if part.lit == nil {
			return code{}, false
		}
		b.vals[i], vals[i] = *part.lit, part.lit.literal()
	}
	b.made = types.NewRefValList(types.DefaultTypeAdapter, vals)
	return literal(listVal(b)), true
}

// mapping compiles a map that is written out.
func (c *nativeCompiler) mapping(e celast.Expr) code {
	entries := e.AsMap().Entries()
	keys, vals := make([]expr, len(entries)), make([]expr, len(entries))
	optional := make([]bool, len(entries))
	fixed := true
	made := make(map[ref.Val]ref.Val, len(entries))
	for i, x := range entries {
		entry := x.AsMapEntry()
		k, v := c.compile(entry.Key()), c.compile(entry.Value())
		keys[i], vals[i], optional[i] = k.settled(), v.settled(), entry.IsOptional()
		if fixed = fixed && k.lit != nil && k.lit.kind != valRef && v.lit != nil && !optional[i]; fixed {
			made[k.lit.literal()] = v.lit.literal()
		}
	}
	if fixed {
		return literal(val{kind: valRef, aux: types.NewRefValMap(types.DefaultTypeAdapter, made)})
	}
	return code{eval: func(f *Frame) val {
		f.charge(mapUnits)
		f.hold(len(keys) * entryBytes)
		entries := make(map[ref.Val]ref.Val, len(keys))
		for i := range keys {
			k := keys[i](f)
			if k.kind == valErr {
				return k
			}
			v := vals[i](f)
			if v.kind == valErr {
				return v
			}
			key := f.ref(k)
			if optional[i] {
				o, ok := v.optional()
				switch {
				case !ok:
					return errVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v", key, f.ref(v)))
				case !o.HasValue():
					delete(entries, key)
					continue
				default:
					v = f.of(o.GetValue())
				}
			}
			entries[key] = f.ref(v)
		}
		return val{kind: valRef, aux: types.NewRefValMap(types.DefaultTypeAdapter, entries)}
	}}
}

// structure compiles an object of a named type.
func (c *nativeCompiler) structure(e celast.Expr) code {
	provider := c.env.CELTypeProvider()
	name := ""
	for _, candidate := range c.env.Container.ResolveCandidateNames(e.AsStruct().TypeName()) {
		if _, ok := provider.FindStructType(candidate); ok {
			name = candidate
			break
		}
	}
	if name == "" {
		return c.refuse("it makes an object of the unknown type '" + e.AsStruct().TypeName() + "'")
	}
	fields := e.AsStruct().Fields()
	names, vals := make([]string, len(fields)), make([]expr, len(fields))
	optional := make([]bool, len(fields))
	for i, x := range fields {
		field := x.AsStructField()
		names[i], vals[i], optional[i] = field.Name(), c.compile(field.Value()).settled(), field.IsOptional()
	}
	return code{eval: func(f *Frame) val {
		f.charge(structUnits)
		f.hold(len(names) * entryBytes)
		members := make(map[string]ref.Val, len(names))
		for i, name := range names {
			v := vals[i](f)
			if v.kind == valErr {
				return v
			}
			if optional[i] {
				o, ok := v.optional()
				switch {
				case !ok:
					return errVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v", name, f.ref(v)))
				case !o.HasValue():
					delete(members, name)
					continue
				default:
					v = f.of(o.GetValue())
				}
			}
			members[name] = f.ref(v)
		}
		return f.of(provider.NewValue(name, members))
	}}
}

// membership compiles a in b.
func (c *nativeCompiler) membership(args []celast.Expr, call *invocation) code {
	a, b := call.args[0], call.args[1]
	if b.lit != nil && b.lit.kind == valList && call.overload == overloads.InList {
		if len(b.lit.list().vals) == 0 {
			return literal(falseVal) // as in cel-go, without a look at a
		}
		if set, ok := newScalarSet(b.lit.list().vals); ok {
			return conditionCode(set.contains(a))
		}
	}
	x, y := a.settled(), b.settled()
	return conditionCode(func(f *Frame) verdict {
		v := x(f)
		w := y(f)
		if v.kind == valErr {
			return f.fail(v.ref())
		}
		switch {
		case w.isMembers() && v.kind == valString:
			f.charge(1)
			found, how := f.member(w.node, w.typ(), v, true)
			if how == present {
				found, how = f.sound(found)
			}
			if how == failed && w.aux != nil {
				return f.fail(found.ref())
			}
			return truthOf(how != none)
		case w.isArray() && w.aux == nil && v.kind == valString:
			return truthOf(f.hasText(w.node, v.str))
		}
		return f.truth(call.two(f, v, w))
	})
}

// hasText tells whether a string is an item of an array of any values.
func (f *Frame) hasText(n document.Node, s string) bool {
	for i := n.First(); i.Valid(); i = i.Next() {
		f.charge(1)
		if i.Is(s) {
			return true
		}
	}
	return false
}

// A scalarSet is a list of literals, all strings, numbers or truths, that is only asked what is in it. Like cel-go's own
// it finds a number of another type only if the two convert to each other.
type scalarSet struct {
	strings []string
	others  map[ref.Val]bool
}

func newScalarSet(vals []val) (*scalarSet, bool) {
	s := &scalarSet{others: make(map[ref.Val]bool)}
	for _, v := range vals {
		switch v.kind {
		case valString:
			s.strings = append(s.strings, v.str)
		case valBool:
			s.others[v.literal()] = true
		case valInt, valUint, valDouble:
			s.addNumber(v)
		default:
			return nil, false
		}
	}
	return s, true
}

func (s *scalarSet) addNumber(v val) {
	number := v.literal()
	s.others[number] = true
	for _, t := range []ref.Type{types.IntType, types.UintType, types.DoubleType} {
		same := number.ConvertToType(t)
		if t == number.Type() || types.IsError(same) {
			continue
		}
		if v.kind == valDouble && same.Equal(number) != types.True {
			continue
		}
		s.others[same] = true
	}
}

func (s *scalarSet) contains(a code) test {
	eval := a.settled()
	search := func(f *Frame) verdict { return s.has(f, eval(f)) }
	if len(s.others) > 0 {
		return search
	}
	return isAmong(a, s.strings, search)
}

func (s *scalarSet) has(f *Frame, v val) verdict {
	switch v.kind {
	case valString:
		return truthOf(slices.Contains(s.strings, v.str))
	case valErr:
		return f.fail(v.ref())
	case valBool, valInt, valUint, valDouble:
		return truthOf(len(s.others) > 0 && s.others[f.ref(v)])
	case valRef:
		if _, ok := v.aux.(types.Bytes); ok {
			panic("runtime error: hash of unhashable type types.Bytes") // as in cel-go
		}
	}
	return isFalse
}
