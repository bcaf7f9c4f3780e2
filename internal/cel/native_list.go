package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
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
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = errVal(types.NewErr("cannot initialize optional list element from non-optional value %v", f.ref(v)))
				case none:
					continue
				default:
					v = inner
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
		return literal(refVal(types.NewRefValMap(types.DefaultTypeAdapter, made)))
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
			v, key := vals[i](f), f.ref(k)
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = errVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v", key, f.ref(v)))
				case none:
					delete(entries, key)
					continue
				default:
					v = inner
				}
			}
			if v.kind == valErr {
				return v
			}
			entries[key] = f.ref(v)
		}
		return refVal(types.NewRefValMap(types.DefaultTypeAdapter, entries))
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
	if resolved, ok := (madeTypes{}).Resolve(name); ok {
		if t, ok := resolved.(*madeType); ok {
			return makingObject(t.of, names, vals, optional)
		}
	}
	return code{eval: func(f *Frame) val {
		f.charge(structUnits)
		f.hold(len(names) * entryBytes)
		members := make(map[string]ref.Val, len(names))
		for i, name := range names {
			v := vals[i](f)
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = errVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v", name, f.ref(v)))
				case none:
					delete(members, name)
					continue
				default:
					v = inner
				}
			}
			if v.kind == valErr {
				return v
			}
			members[name] = f.ref(v)
		}
		return f.of(provider.NewValue(name, members))
	}}
}

// makingObject makes an object of a patch. Its fields are sorted when the expression is compiled, and evaluated in the
// order in which they are written.
func makingObject(t *types.Type, names []string, vals []expr, optional []bool) code {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	places := make([]int, len(names))
	for i, name := range names {
		places[i], _ = slices.BinarySearch(sorted, name)
	}
	return code{eval: func(f *Frame) val {
		f.charge(structUnits)
		f.hold(len(names) * entryBytes)
		m := &made{typ: t, names: sorted, vals: make([]ref.Val, len(sorted))}
		absent := false
		for i, eval := range vals {
			v := eval(f)
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = errVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v", names[i], f.ref(v)))
				case none:
					m.vals[places[i]] = nil
					absent = true
					continue
				default:
					v = inner
				}
			}
			if v.kind == valErr {
				return v
			}
			m.vals[places[i]] = f.ref(v)
		}
		if absent {
			m.dropAbsent()
		}
		return refVal(m)
	}}
}

// dropAbsent leaves out the fields without a value.
func (m *made) dropAbsent() {
	var names []string
	var vals []ref.Val
	for i, v := range m.vals {
		if v != nil {
			names, vals = append(names, m.names[i]), append(vals, v)
		}
	}
	m.names, m.vals = names, vals
}
