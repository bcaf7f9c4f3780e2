package plan

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unique"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A Shared keeps the values of rules for all plans that judge a request, so that what many
// templates define alike, such as the containers of a Pod, is found once. It keeps the values of
// rules that read input.review alone: all plans that share it must see the same review. It belongs
// to one goroutine. Whether a value is kept never changes a result.
type Shared struct {
	values map[key]Value
	kept   int64
	memory Memory
}

// A Memory is asked before more bytes are kept.
type Memory interface{ Grow(bytes int) bool }

// NewShared returns a Shared that asks a memory before it keeps more; nil allows for all.
func NewShared(m Memory) *Shared { return &Shared{memory: m} }

// Begin is NewShared in place of one that is not in use any more.
func (s *Shared) Begin(m Memory) {
	if len(s.values) > maxRoom {
		s.values = nil
	}
	clear(s.values)
	*s = Shared{values: s.values, memory: m}
}

// maxRoom is for how many values room is kept at most.
const maxRoom = 64

// maxShared is how many bytes of values a request keeps at most.
const maxShared = 1 << 20

// keep keeps the value of a rule that took so many bytes; no value: the rule has none.
func (s *Shared) keep(of key, value Value, bytes int64) {
	if bytes += sharedCost; s.kept+bytes > maxShared || s.memory != nil && !s.memory.Grow(int(bytes)) {
		return
	}
	if s.values == nil {
		s.values = map[key]Value{}
	}
	s.kept += bytes
	s.values[of] = value
}

// sharedCost is what an entry takes, beside its value.
const sharedCost = 64

// A key stands for all rules that are written alike, but for the names of packages and of variables
// that OPA's compiler made.
type key = unique.Handle[[sha256.Size]byte]

// A signature is the text of a rule that [Shared] may keep.
type signature struct {
	text     string
	isShared bool
}

// sharedKey returns the key of the rules at a path; false if their value depends on more than
// input.review.
func (b *builder) sharedKey(path ast.Ref) (key, bool) {
	s := b.signature(path)
	if !s.isShared {
		return key{}, false
	}
	return unique.Make(sha256.Sum256([]byte(s.text))), true
}

func (b *builder) signature(path ast.Ref) signature {
	name := path.String()
	if s, ok := b.signatures[name]; ok {
		return s
	}
	b.signatures[name] = signature{} // rules are not recursive
	w := signer{builder: b, names: map[ast.Var]ast.Var{}, isShared: true}
	node := b.compiler.RuleTree.Find(path)
	if node == nil || len(node.Children) > 0 {
		return signature{}
	}
	for _, rule := range node.Values {
		for r := rule; r != nil && w.isShared; r = r.Else {
			w.rule(r)
		}
		w.text.WriteString("\n")
	}
	s := signature{w.text.String(), w.isShared}
	b.signatures[name] = s
	return s
}

// A signer writes the signature of rules.
type signer struct {
	*builder
	text     strings.Builder
	names    map[ast.Var]ast.Var
	isShared bool
}

func (w *signer) rule(r *ast.Rule) {
	fmt.Fprintf(&w.text, "%v %v %v", r.Default, r.Head.RuleKind(), len(r.Head.Ref()))
	for _, arg := range r.Head.Args {
		w.write(arg)
	}
	if ref := r.Head.Ref(); len(ref) > 1 {
		w.write(ref[len(ref)-1])
	}
	w.write(r.Head.Key)
	w.write(r.Head.Value)
	ast.WalkExprs(r.Body, func(e *ast.Expr) bool {
		w.isShared = w.isShared && len(e.With) == 0
		return !w.isShared
	})
	if w.isShared {
		w.text.WriteString(" if ")
		w.part(r.Body.Copy())
	}
}

func (w *signer) write(t *ast.Term) {
	w.text.WriteString(" | ")
	if t != nil {
		w.part(t.Copy())
	}
}

// part writes a copy of a part of a rule.
func (w *signer) part(of any) {
	of, err := ast.TransformRefs(of, w.ref)
	if err == nil {
		of, err = ast.TransformVars(of, w.variable)
	}
	if err != nil {
		w.isShared = false
		return
	}
	fmt.Fprint(&w.text, of)
}

// ref returns a reference as the signature has it: a rule stands for its own signature.
func (w *signer) ref(r ast.Ref) (ast.Value, error) {
	switch {
	case r[0].Equal(ast.InputRootDocument):
		name, ok := ast.String(""), false
		if len(r) > 1 {
			name, ok = r[1].Value.(ast.String)
		}
		w.isShared = w.isShared && ok && name == "review"
	case r[0].Equal(ast.DefaultRootDocument):
		return w.rulePath(r), nil
	default:
		if f := ast.BuiltinMap[r.String()]; f != nil {
			w.isShared = w.isShared && !f.Nondeterministic && f.Decl.Result() != nil
		}
	}
	return r, nil
}

func (w *signer) rulePath(r ast.Ref) ast.Ref {
	node := w.compiler.RuleTree.Child(r[0].Value)
	for at := 1; at < len(r) && node != nil && ast.IsScalar(r[at].Value); at++ {
		if node = node.Child(r[at].Value); node == nil || len(node.Values) == 0 {
			continue
		}
		s := w.signature(r[:at+1])
		w.isShared = w.isShared && s.isShared
		sum := sha256.Sum256([]byte(s.text))
		return append(ast.Ref{r[0], ast.StringTerm(fmt.Sprintf("%x", sum))}, r[at+1:]...)
	}
	w.isShared = false // data that no rule defines, or many rules
	return r
}

// variable numbers the variables that OPA's compiler made, which are numbered by module.
func (w *signer) variable(v ast.Var) (ast.Value, error) {
	if !v.IsGenerated() && !v.IsWildcard() {
		return v, nil
	}
	name, ok := w.names[v]
	if !ok {
		name = ast.Var(fmt.Sprintf("__%d", len(w.names)))
		w.names[v] = name
	}
	return name, nil
}
