package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/tools/load"
)

// A function is one of a module's whose results have a pointer to a type that is an error.
type function struct {
	of       *types.Func // nil for a function without a name
	at       token.Position
	name     string
	result   int
	pointer  string
	returned []ast.Expr // the results in its return statements
	info     *types.Info
	receiver types.Object
	// assigned is what each local variable is given; nil means not known.
	assigned map[types.Object][]ast.Expr
	// guarded are the variables that errors.AsType has found something for.
	guarded map[types.Object]bool
	// isOpen is set for what has no body, such as a method of an interface, and for bare returns.
	isOpen bool
}

// violations returns what may return nil as a pointer to a type that is an error, in the order of the source.
func violations(packages []load.Package) []function {
	var all []*function
	for _, p := range packages {
		for _, file := range p.Syntax {
			all = append(all, functionsOf(p, file)...)
		}
	}
	// A constructor returns new values alone, or what another constructor returned. Candidates that
	// are not constructors are taken out until nothing changes.
	makers := map[string]bool{}
	for _, f := range all {
		if f.of != nil {
			makers[f.of.FullName()] = !f.isOpen
		}
	}
	for changed := true; changed; {
		changed = false
		for _, f := range all {
			if f.of != nil && makers[f.of.FullName()] && !f.makes(makers) {
				makers[f.of.FullName()], changed = false, true
			}
		}
	}
	var found []function
	for _, f := range all {
		if f.isOpen || !f.makes(makers) {
			found = append(found, *f)
		}
	}
	return found
}

// functionsOf returns the functions of a file, and the methods of its interfaces.
func functionsOf(p load.Package, file *ast.File) (all []*function) {
	add := func(of *types.Func, name string, signature *types.Signature, at token.Pos, body *ast.BlockStmt) {
		for i := range signature.Results().Len() {
			if t := signature.Results().At(i).Type(); isErrorPointer(t) {
				f := &function{of: of, at: p.Fset.Position(at), name: name, result: i,
					pointer: types.TypeString(t, short), info: p.TypesInfo}
				if r := signature.Recv(); r != nil {
					f.receiver = r
				}
				f.read(body)
				all = append(all, f)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			of := p.TypesInfo.Defs[n.Name].(*types.Func)
			add(of, n.Name.Name, of.Signature(), n.Pos(), n.Body)
		case *ast.FuncLit:
			if signature := p.TypesInfo.TypeOf(n).(*types.Signature); !isForeign(p.Types, signature) {
				add(nil, "a function", signature, n.Pos(), n.Body)
			}
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, name := range m.Names {
					of := p.TypesInfo.Defs[name].(*types.Func)
					add(of, name.Name, of.Signature(), name.Pos(), nil)
				}
			}
		}
		return true
	})
	return all
}

// isForeign reports whether a function that is a value has a result of another module's error type: the library that it
// is given to asks for it, as OPA's compiler does of its stages.
func isForeign(p *types.Package, signature *types.Signature) bool {
	parts := strings.SplitN(p.Path(), "/", 4)
	module := strings.Join(parts[:min(len(parts), 3)], "/") // host, owner and name
	for i := range signature.Results().Len() {
		if to, is := signature.Results().At(i).Type().(*types.Pointer); is && isErrorPointer(to) {
			of := types.Unalias(to.Elem()).(*types.Named).Obj().Pkg()
			return of != nil && of.Path() != p.Path() && !strings.HasPrefix(of.Path(), module+"/")
		}
	}
	return false
}

func short(p *types.Package) string { return p.Name() }

// isErrorPointer reports whether t is a pointer to a named type, and an error.
func isErrorPointer(t types.Type) bool {
	to, is := t.(*types.Pointer)
	if !is {
		return false
	}
	_, isNamed := types.Unalias(to.Elem()).(*types.Named)
	return isNamed && types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// read finds what the function returns.
func (f *function) read(body *ast.BlockStmt) {
	if body == nil {
		f.isOpen = true
		return
	}
	f.assigned, f.guarded = map[types.Object][]ast.Expr{}, map[types.Object]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				var from ast.Expr
				if len(n.Rhs) == len(n.Lhs) {
					from = n.Rhs[i]
				}
				f.assign(to, from)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				f.assign(n.X, nil)
			}
		case *ast.IfStmt:
			f.readGuard(n)
		}
		return true
	})
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			switch {
			case len(n.Results) > f.result && (len(n.Results) > 1 || f.result == 0):
				f.returned = append(f.returned, n.Results[f.result])
			default:
				f.isOpen = true
			}
		}
		return true
	})
}

// readGuard reads `if e, is := errors.AsType[*E](err); is`, in whose body e is an error.
func (f *function) readGuard(n *ast.IfStmt) {
	init, _ := n.Init.(*ast.AssignStmt)
	condition, _ := n.Cond.(*ast.Ident)
	if init == nil || condition == nil || n.Else != nil || len(init.Lhs) != 2 || len(init.Rhs) != 1 {
		return
	}
	call, _ := init.Rhs[0].(*ast.CallExpr)
	if call == nil {
		return
	}
	callee := call.Fun
	if index, is := callee.(*ast.IndexExpr); is {
		callee = index.X
	}
	name, _ := callee.(*ast.SelectorExpr)
	if name == nil {
		return
	}
	of, _ := f.info.Uses[name.Sel].(*types.Func)
	is, _ := init.Lhs[1].(*ast.Ident)
	if of == nil || of.FullName() != "errors.AsType" || is == nil || f.info.Uses[condition] != f.info.Defs[is] {
		return
	}
	if e, is := init.Lhs[0].(*ast.Ident); is {
		f.guarded[f.info.Defs[e]] = true
	}
}

// assign notes what a local variable is given.
func (f *function) assign(to, from ast.Expr) {
	name, is := ast.Unparen(to).(*ast.Ident)
	if !is {
		return
	}
	o := f.info.Defs[name]
	if o == nil {
		o = f.info.Uses[name]
	}
	f.assigned[o] = append(f.assigned[o], from)
}

// makes reports whether the function returns new values, what a constructor returned, or its receiver.
func (f *function) makes(makers map[string]bool) bool {
	return !slices.ContainsFunc(f.returned, func(e ast.Expr) bool { return !f.isNew(e, makers) })
}

func (f *function) isNew(e ast.Expr, makers map[string]bool) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return e.Op == token.AND
	case *ast.Ident:
		of := f.info.Uses[e]
		if f.guarded[of] {
			return true
		}
		given := f.assigned[of]
		if slices.ContainsFunc(given, func(e ast.Expr) bool { return e == nil || !f.isNew(e, makers) }) {
			return false
		}
		return len(given) > 0 || f.isOwn(of)
	case *ast.CallExpr:
		called := calledBy(f.info, e)
		if called == nil || !makers[called.FullName()] && !isLibraryMaker(called) {
			return false
		}
		// What returns its argument makes something if that is something.
		parameters := called.Signature().Params()
		for i := range min(len(e.Args), parameters.Len()) {
			if types.Identical(parameters.At(i).Type(), f.info.TypeOf(e)) && !f.isNew(e.Args[i], makers) {
				return false
			}
		}
		return true
	}
	return false
}

// calledBy returns the function that a call names; nil for a value.
func calledBy(info *types.Info, call *ast.CallExpr) *types.Func {
	var name *ast.Ident
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return nil
	}
	f, _ := info.Uses[name].(*types.Func)
	return f
}

// isOwn reports whether a variable is the receiver, or a parameter that is an error: the caller has
// to give one.
func (f *function) isOwn(of types.Object) bool {
	if of == nil || of == f.receiver {
		return of != nil
	}
	if f.of == nil {
		return false
	}
	for p := range f.of.Signature().Params().Variables() {
		if p == of {
			return true
		}
	}
	return false
}

// isLibraryMaker reports whether a function is one of Kubernetes' that make errors: none returns nil.
func isLibraryMaker(f *types.Func) bool {
	switch f.Pkg().Path() {
	case "k8s.io/apimachinery/pkg/util/validation/field", "k8s.io/apimachinery/pkg/api/errors":
		return true
	}
	return false
}
