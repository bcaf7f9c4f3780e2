package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Read is a place that an expression reads.
type Read struct {
	// Root is the variable that it begins at.
	Root value.Slot
	Path []ReadStep
	// Deep is set if everything in the value counts, and not only whether it is there and how many
	// it holds.
	Deep bool
}

// A ReadStep leads from an object or list to a value in it.
type ReadStep struct {
	// Name is the member, if Any is not set.
	Name string
	// Any is set for items of lists and for members whose names are computed.
	Any bool
}

// readsOf finds what an expression reads from self and object. It errs on the side of more: whatever is not understood
// counts as read with everything in it.
func readsOf(ast *celast.AST) []Read {
	reads, _ := readsAndCountsOf(ast)
	return reads
}

// readsAndCountsOf is readsOf, with those of the places whose numbers say how many items the expression makes.
func readsAndCountsOf(ast *celast.AST) (reads, counts []Read) {
	c := readCollector{ast: ast, locals: map[string]*Read{}}
	c.collect(ast.Expr(), true)
	return c.reads, c.counts
}

// carriedFields are the members of metadata that a server carries over from the stored object.
var carriedFields = []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "uid"}

// isCarried reports whether a read of the object may reach something that a server carries over
// from the stored object.
func isCarried(r Read) bool {
	switch {
	case r.Root != value.Object:
		return false
	case len(r.Path) == 0 || r.Path[0].Any || r.Path[0].Name == "status":
		return true
	case r.Path[0].Name != "metadata":
		return false
	}
	return len(r.Path) == 1 || r.Path[1].Any || slices.Contains(carriedFields, r.Path[1].Name)
}

type readCollector struct {
	ast    *celast.AST
	locals map[string]*Read // variables of loops: the place that they stand for, or nil
	reads  []Read
	counts []Read // those of the arguments of lists.range
}

func (c *readCollector) note(r Read, deep bool) {
	r.Deep = deep
	c.reads = append(c.reads, r)
}

// collect notes what the expression reads. deep reports whether all of its value counts.
func (c *readCollector) collect(e celast.Expr, deep bool) {
	if r, ok := c.place(e); ok {
		c.note(r, deep && !(e.Kind() == celast.SelectKind && e.AsSelect().IsTestOnly()))
		return
	}
	switch e.Kind() {
	case celast.SelectKind:
		c.collect(e.AsSelect().Operand(), true)
	case celast.CallKind:
		call := e.AsCall()
		shallow := call.FunctionName() == "size" || call.FunctionName() == "hasValue"
		if call.IsMemberFunction() {
			c.collect(call.Target(), !shallow)
		}
		before := len(c.reads)
		for _, x := range call.Args() {
			c.collect(x, !shallow)
		}
		if isRange(call) {
			c.counts = append(c.counts, c.reads[before:]...)
		}
	case celast.ListKind:
		for _, x := range e.AsList().Elements() {
			c.collect(x, true)
		}
	case celast.MapKind:
		for _, x := range e.AsMap().Entries() {
			c.collect(x.AsMapEntry().Key(), true)
			c.collect(x.AsMapEntry().Value(), true)
		}
	case celast.StructKind:
		for _, x := range e.AsStruct().Fields() {
			c.collect(x.AsStructField().Value(), true)
		}
	case celast.ComprehensionKind:
		c.loop(e.AsComprehension())
	}
}

// isRange reports whether a call, which may not be checked yet, is one of lists.range.
func isRange(call celast.CallExpr) bool {
	if call.IsMemberFunction() {
		of := call.Target()
		return call.FunctionName() == "range" && of.Kind() == celast.IdentKind && of.AsIdent() == "lists"
	}
	return call.FunctionName() == "lists.range"
}

// loop notes what a loop reads. Its variable stands for the items of what it goes over, if that is a place.
func (c *readCollector) loop(x celast.ComprehensionExpr) {
	over, isPlace := c.place(x.IterRange())
	var item *Read
	if isPlace {
		c.note(over, false)
		item = &Read{Root: over.Root, Path: with(over.Path, ReadStep{Any: true})}
	} else {
		c.collect(x.IterRange(), true)
	}
	key := x.IterVar()
	value := x.IterVar2()
	if value == "" && c.ast.GetType(x.IterRange().ID()).Kind() != types.MapKind {
		key, value = "", key
	}
	c.collect(x.AccuInit(), true)
	restore := c.bind(map[string]*Read{key: nil, value: item, x.AccuVar(): nil})
	c.collect(x.LoopCondition(), true)
	c.collect(x.LoopStep(), true)
	c.collect(x.Result(), true)
	restore()
}

// bind sets variables of a loop until restore is called.
func (c *readCollector) bind(vars map[string]*Read) (restore func()) {
	type bound struct {
		read *Read
		was  bool
	}
	outer := map[string]bound{}
	for name, r := range vars {
		before, was := c.locals[name]
		outer[name] = bound{before, was}
		c.locals[name] = r
	}
	return func() {
		for name, b := range outer {
			if b.was {
				c.locals[name] = b.read
			} else {
				delete(c.locals, name)
			}
		}
	}
}

// place is the place that an expression stands for, if it is a chain of members and indexes from a variable. What is
// computed on the way is noted.
func (c *readCollector) place(e celast.Expr) (Read, bool) {
	switch e.Kind() {
	case celast.IdentKind:
		name := e.AsIdent()
		if local, bound := c.locals[name]; bound {
			if local == nil {
				return Read{}, false
			}
			return *local, true
		}
		switch name {
		case plan.NameSelf:
			return Read{Root: value.Self}, true
		case plan.NameObject:
			return Read{Root: value.Object}, true
		}
	case celast.SelectKind:
		s := e.AsSelect()
		r, ok := c.place(s.Operand())
		if !ok {
			return Read{}, false
		}
		name := s.FieldName()
		if c.ast.GetType(s.Operand().ID()).Kind() == types.StructKind {
			if plain, escaped := apiservercel.Unescape(name); escaped {
				name = plain
			}
		}
		r.Path = with(r.Path, ReadStep{Name: name})
		return r, true
	case celast.CallKind:
		return c.called(e.AsCall())
	}
	return Read{}, false
}

func (c *readCollector) called(call celast.CallExpr) (Read, bool) {
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		r, ok := c.place(call.Args()[0])
		if !ok {
			return Read{}, false
		}
		at := call.Args()[1]
		step := ReadStep{Any: true}
		if at.Kind() != celast.LiteralKind {
			c.collect(at, true)
		} else if name, ok := at.AsLiteral().(types.String); ok {
			step = ReadStep{Name: string(name)}
			if call.FunctionName() == operators.OptSelect {
				if plain, escaped := apiservercel.Unescape(step.Name); escaped {
					step.Name = plain
				}
			}
		}
		r.Path = with(r.Path, step)
		return r, true
	case "value":
		if call.IsMemberFunction() {
			return c.place(call.Target())
		}
	}
	return Read{}, false
}

func with(path []ReadStep, s ReadStep) []ReadStep {
	return append(path[:len(path):len(path)], s)
}
