package plan

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

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
		items[i] = part.scalar()
	}
	return code{eval: func(f *Machine) Val {
		f.Arena.Charge(listUnits)
		mark := len(f.stack)
		for i, item := range items {
			v := item(f)
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = ErrVal(types.NewErr("cannot initialize optional list element from non-optional value %v",
						f.Ref(v)))
				case none:
					continue
				default:
					v = inner
				}
			}
			if v.Kind == ValErr {
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
	b := &built{vals: make([]Val, len(parts))}
	vals := make([]ref.Val, len(parts))
	for i, part := range parts {
		if part.lit == nil {
			return code{}, false
		}
		b.vals[i], vals[i] = *part.lit, part.lit.literal()
	}
	b.Made = types.NewRefValList(types.DefaultTypeAdapter, vals)
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
		keys[i], vals[i], optional[i] = k.scalar(), v.scalar(), entry.IsOptional()
		if fixed = fixed && k.lit != nil && k.lit.Kind != valRef && v.lit != nil && !optional[i]; fixed {
			made[k.lit.literal()] = v.lit.literal()
		}
	}
	if fixed {
		return literal(refVal(types.NewRefValMap(types.DefaultTypeAdapter, made)))
	}
	units := int64(mapUnits)
	if _, isConstant := ConstantSize(e); isConstant {
		units = 0 // as for cel-go, which makes it once; a list or map as a key is made here each time
	}
	return code{eval: func(f *Machine) Val {
		f.Arena.Charge(units)
		f.count(len(keys) * EntryBytes)
		entries := make(map[ref.Val]ref.Val, len(keys))
		for i := range keys {
			k := keys[i](f)
			if k.Kind == ValErr {
				return k
			}
			v, key := vals[i](f), f.Ref(k)
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = ErrVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v", key,
						f.Ref(v)))
				case none:
					delete(entries, key)
					continue
				default:
					v = inner
				}
			}
			if v.Kind == ValErr {
				return v
			}
			entries[key] = f.Ref(v)
		}
		return refVal(types.NewRefValMap(types.DefaultTypeAdapter, entries))
	}}
}

// structure compiles an object of a named type.
func (c *nativeCompiler) structure(e celast.Expr) code {
	provider := c.env.Types
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
		names[i], vals[i], optional[i] = field.Name(), c.compile(field.Value()).scalar(), field.IsOptional()
	}
	if resolved, ok := (value.MadeTypes{}).Resolve(name); ok {
		if t, ok := resolved.(*value.MadeType); ok {
			return makingObject(t.Of, names, vals, optional)
		}
	}
	return code{eval: func(f *Machine) Val {
		f.Arena.Charge(structUnits)
		f.count(len(names) * EntryBytes)
		members := make(map[string]ref.Val, len(names))
		for i, name := range names {
			v := vals[i](f)
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = ErrVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v", name,
						f.Ref(v)))
				case none:
					delete(members, name)
					continue
				default:
					v = inner
				}
			}
			if v.Kind == ValErr {
				return v
			}
			members[name] = f.Ref(v)
		}
		return f.Of(provider.NewValue(name, members))
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
	return code{eval: func(f *Machine) Val {
		f.Arena.Charge(structUnits)
		f.count(len(names) * EntryBytes)
		m := &value.Made{Typ: t, Names: sorted, Vals: make([]ref.Val, len(sorted))}
		absent := false
		for i, eval := range vals {
			v := eval(f)
			if optional[i] {
				switch inner, how := f.unwrap(v); how {
				case present:
					v = ErrVal(types.NewErr("cannot initialize optional entry '%v' from non-optional value %v",
						names[i], f.Ref(v)))
				case none:
					m.Vals[places[i]] = nil
					absent = true
					continue
				default:
					v = inner
				}
			}
			if v.Kind == ValErr {
				return v
			}
			m.Vals[places[i]] = f.Ref(v)
		}
		if absent {
			m.DropAbsent()
		}
		return refVal(m)
	}}
}
