package builtin

import (
	"fmt"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Guard puts a guard before each of OPA's functions, once. OPA looks for its own functions in one
// table of the process, and only then for functions that a query is given; no other package uses
// the table. A function without a contract fails.
var Guard = sync.OnceFunc(func() {
	contracts := map[string]*Contract{}
	for _, c := range Table() {
		for _, name := range c.Names {
			contracts[name] = &c
		}
	}
	for _, decl := range ast.Builtins {
		f := topdown.GetBuiltin(decl.Name)
		c := contracts[decl.Name]
		switch {
		case f == nil || c != nil && c.Keeper == Passes:
			continue
		case c == nil:
			f = unknown(decl.Name)
		default:
			f = c.guarded(decl.Name, f)
		}
		if c != nil && c.Keeper == Refused {
			f = lacking(decl.Name, c.Why, f)
		}
		decl.CanSkipBctx = false
		topdown.RegisterBuiltinFunc(decl.Name, f)
	}
})

func unknown(name string) topdown.BuiltinFunc {
	return func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error {
		return topdown.Halt{Err: fmt.Errorf("nothing is known of what %s takes", name)}
	}
}

// unbudgeted is how much a call may take that has no budget, such as one of a test. It is asked of
// those calls alone whose operands have to be checked.
const unbudgeted = 64 << 20

// small is so little memory that a call is not asked for it.
const small = 4 << 10

// A holding is memory that was taken for a call, until it has its value.
type holding struct {
	budget Budget
	bytes  int64
}

// hold takes what a call needs; ok is false if there is not as much. Nothing is held of little.
func hold(b Budget, n need) (h *holding, ok bool) {
	if n.memory <= small {
		return nil, n.steps == 0 || b.Spend(n.steps)
	}
	if !b.Spend(add(n.memory, n.steps)) {
		return nil, false
	}
	return &holding{b, n.memory}, true
}

func (h *holding) free() {
	if h != nil && h.bytes > 0 {
		h.budget.Return(h.bytes)
		h.bytes = 0
	}
}

// guarded lets a function run if the budget allows for what it takes, and charges what it made.
func (c *Contract) guarded(name string, f topdown.BuiltinFunc) topdown.BuiltinFunc {
	if c.plain > 0 || name == ast.HTTPSend.Name {
		f = c.checked(name, f)
	}
	calls := sync.Pool{New: func() any { return newRunning(name) }}
	return func(bctx topdown.BuiltinContext, of []*ast.Term, iter func(*ast.Term) error) error {
		b, ok := bctx.Cancel.(Budget)
		if !ok {
			return f(bctx, of, iter)
		}
		at := bctx.Location
		var n need
		if c.cost != nil {
			n = c.cost(operands{b.Left(), of})
		}
		h, ok := hold(b, n)
		if !ok {
			return halt(b, at)
		}
		if c.check != nil {
			if err := c.check(operands{b.Left(), of}); err != nil {
				h.free()
				return failed(name, err, at)
			}
		}
		one := calls.Get().(*running)
		one.budget, one.held, one.at, one.iter = b, h, at, iter
		value := one.value
		var err error
		switch {
		case c.own != nil:
			err = c.own(bctx, b, of, value)
		case c.more != nil:
			err = c.held(bctx, b, of, f, value)
		default:
			if name == ast.HTTPSend.Name {
				bctx.RoundTripper = metering(b, bctx.RoundTripper)
			}
			err = f(bctx, of, value)
		}
		h.free()
		one.budget, one.held, one.at, one.iter = nil, nil, nil, nil
		calls.Put(one) // but not after a panic
		return err
	}
}

// A running is room for a call of a function.
type running struct {
	name   string
	budget Budget
	held   *holding
	at     *ast.Location
	iter   func(*ast.Term) error
	value  func(*ast.Term) error // charges a value, and hands it on
}

func newRunning(name string) *running {
	c := &running{name: name}
	c.value = c.take
	return c
}

func (c *running) take(t *ast.Term) error {
	c.held.free()
	if t == nil {
		return c.iter(t)
	}
	if n, ok := t.Value.(ast.Number); ok {
		if err := CheckNumber(string(n)); err != nil {
			return failed(c.name, err, c.at)
		}
	}
	if !c.budget.Spend(sizeOf(t.Value, c.budget.Left(), 2)) {
		return halt(c.budget, c.at)
	}
	return c.iter(t)
}

// held lets a function run if the budget allows for what else it takes.
func (c *Contract) held(bctx topdown.BuiltinContext, b Budget, of []*ast.Term, f topdown.BuiltinFunc,
	iter func(*ast.Term) error) error {
	h, ok := hold(b, c.more(operands{b.Left(), of}))
	if !ok {
		return halt(b, bctx.Location)
	}
	defer h.free()
	return f(bctx, of, func(t *ast.Term) error {
		h.free()
		return iter(t)
	})
}

// checked lets a function run if its operands are right, from every caller: of schemas, the name is
// taken out.
func (c *Contract) checked(name string, f topdown.BuiltinFunc) topdown.BuiltinFunc {
	return func(bctx topdown.BuiltinContext, of []*ast.Term, iter func(*ast.Term) error) error {
		if _, hasBudget := bctx.Cancel.(Budget); !hasBudget {
			if err := c.check(operands{unbudgeted, of}); err != nil {
				return failed(name, err, bctx.Location)
			}
		}
		if c.plain > 0 {
			of = append([]*ast.Term(nil), of...)
			of[c.plain-1] = withoutName(of[c.plain-1])
		}
		return f(bctx, of, iter)
	}
}

// failed ends the evaluation: what a function may not do is no error that counts as an undefined value.
func failed(name string, err error, at *ast.Location) error {
	return topdown.Halt{Err: &topdown.Error{Code: topdown.BuiltinErr, Message: name + ": " + err.Error(), Location: at}}
}
