package cel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Unfilled are fields of an object that may be missing although its schema has a default for them, because the default
// is left to the API.
type Unfilled struct{ paths map[string]bool }

// Has reports whether the field at a path is one of them.
func (u *Unfilled) Has(path string) bool { return u != nil && u.paths[path] }

// Item is the part of a path of [NewUnfilled] that stands for each item of a list, and each value of a map.
const Item = "[*]"

// NewUnfilled takes the paths of the fields, such as '.spec.size' and '.lines[*].count'. It returns nil if there are
// none.
func NewUnfilled(paths []string) *Unfilled {
	if len(paths) == 0 {
		return nil
	}
	u := &Unfilled{map[string]bool{}}
	for _, path := range paths {
		u.paths[path] = true
	}
	return u
}

// An UnfilledReader finds the expressions that fail if such a field is missing.
type UnfilledReader struct {
	fields *Unfilled
	roots  map[string]string // the variables that have objects, with their places in the object
	named  map[string]string // variables of a policy that are a part of an object, with their paths
	asked  map[string]bool   // for all expressions
}

// Reader starts to look at expressions. Each root is a variable that has the object, or the part of it at a path.
func (u *Unfilled) Reader(roots map[string]string) *UnfilledReader {
	return &UnfilledReader{u, roots, map[string]string{}, map[string]bool{}}
}

// Condition takes a match condition: what it asks for with has() the other expressions need not ask for.
func (r *UnfilledReader) Condition(p *Parsed) { maps.Copy(r.asked, r.look(p).asked) }

// Variable takes a variable of the policy, which later expressions may read.
func (r *UnfilledReader) Variable(name string, p *Parsed) {
	l := r.look(p)
	if l.root == nil {
		return
	}
	if path, found := l.path(l.root, nil); found {
		r.named[name] = path
	}
}

// Reads returns the fields that an expression reads and does not ask for, as an expression writes them.
func (r *UnfilledReader) Reads(p *Parsed) (fields []string) {
	l := r.look(p)
	for path := range l.read {
		if !l.asked[path] && !r.asked[path] {
			fields = append(fields, path)
		}
	}
	slices.Sort(fields)
	return fields
}

// SayUnasked says that an expression reads fields that [UnfilledReader.Reads] has found; "" for none.
func SayUnasked(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	defaults, which := "default is", "it"
	if len(fields) > 1 {
		defaults, which = "defaults are", "them"
	}
	return fmt.Sprintf("reads `%s`, whose %s left to the API: the expression fails where the field is left out; ask for %s with has() first",
		strings.Join(fields, "`, `"), defaults, which)
}

// look finds the fields that an expression mentions. One that is no CEL mentions none: compiling it says so.
func (r *UnfilledReader) look(p *Parsed) *unfilledLook {
	l := &unfilledLook{reader: r, read: map[string]bool{}, asked: map[string]bool{}}
	if tree, _ := p.tree(); tree != nil {
		l.root = tree.NativeRep().Expr()
		l.walk(l.root, nil)
	}
	return l
}

// unfilledLook is a look at one expression.
type unfilledLook struct {
	reader      *UnfilledReader
	root        celast.Expr
	read, asked map[string]bool
}

// inner are the variables of a comprehension, with their paths; "" is for those that have no path.
type inner struct {
	names map[string]string
	outer *inner
}

func (s *inner) find(name string) (path string, found bool) {
	for ; s != nil; s = s.outer {
		if path, found = s.names[name]; found {
			return path, true
		}
	}
	return "", false
}

// path returns which part of an object an expression is; false if it is none.
func (l *unfilledLook) path(e celast.Expr, s *inner) (path string, found bool) {
	switch e.Kind() {
	case celast.IdentKind:
		name := e.AsIdent()
		if path, found = s.find(name); found {
			return path, path != ""
		}
		_, found = l.reader.roots[name]
		return name, found
	case celast.SelectKind:
		selected := e.AsSelect()
		if selected.IsTestOnly() {
			return "", false
		}
		return l.member(selected.Operand(), selected.FieldName(), s)
	case celast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index {
			return "", false
		}
		if name, ok := call.Args()[1].AsLiteral().(types.String); ok {
			if path, found = l.path(call.Args()[0], s); found && l.isUnfilled(path+"."+string(name)) {
				return path + "." + string(name), true
			}
		}
		path, found = l.path(call.Args()[0], s)
		return path + Item, found
	}
	return "", false
}

// member returns the path of a member of what an expression is.
func (l *unfilledLook) member(of celast.Expr, name string, s *inner) (path string, found bool) {
	if plain, ok := apiservercel.Unescape(name); ok {
		name = plain
	}
	if of.Kind() == celast.IdentKind && of.AsIdent() == "variables" {
		path, found = l.reader.named[name]
		return path, found
	}
	path, found = l.path(of, s)
	return path + "." + name, found
}

// isUnfilled reports whether a path is one of the fields.
func (l *unfilledLook) isUnfilled(path string) bool {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return false
	}
	return l.reader.fields.paths[l.reader.roots[path[:end]]+path[end:]]
}

// walk notes what an expression and all within it read and ask for.
func (l *unfilledLook) walk(e celast.Expr, s *inner) {
	if path, found := l.path(e, s); found && l.isUnfilled(path) {
		l.read[path] = true
	}
	switch e.Kind() {
	case celast.SelectKind:
		selected := e.AsSelect()
		if selected.IsTestOnly() {
			if path, found := l.member(selected.Operand(), selected.FieldName(), s); found {
				l.asked[path] = true
			}
		}
		l.walk(selected.Operand(), s)
	case celast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			l.walk(call.Target(), s)
		}
		for _, a := range call.Args() {
			l.walk(a, s)
		}
		if call.FunctionName() == operators.In && call.Args()[0].Kind() == celast.LiteralKind {
			if name, ok := call.Args()[0].AsLiteral().(types.String); ok {
				if path, found := l.path(call.Args()[1], s); found {
					l.asked[path+"."+string(name)] = true
				}
			}
		}
	case celast.ListKind:
		for _, item := range e.AsList().Elements() {
			l.walk(item, s)
		}
	case celast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			l.walk(entry.AsMapEntry().Key(), s)
			l.walk(entry.AsMapEntry().Value(), s)
		}
	case celast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			l.walk(f.AsStructField().Value(), s)
		}
	case celast.ComprehensionKind:
		l.comprehension(e.AsComprehension(), s)
	}
}

// comprehension walks through a macro such as all() and exists(): its variable is an item of the list, or a key of the
// map.
func (l *unfilledLook) comprehension(c celast.ComprehensionExpr, s *inner) {
	l.walk(c.IterRange(), s)
	l.walk(c.AccuInit(), s)
	in := &inner{map[string]string{}, s}
	in.names[c.AccuVar()] = ""
	item := ""
	if path, found := l.path(c.IterRange(), s); found {
		item = path + Item
	}
	if in.names[c.IterVar()] = item; c.HasIterVar2() {
		in.names[c.IterVar()], in.names[c.IterVar2()] = "", item
	}
	l.walk(c.LoopCondition(), in)
	l.walk(c.LoopStep(), in)
	l.walk(c.Result(), in)
}
