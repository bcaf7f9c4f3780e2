package celtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// Limit is how many units an evaluation may cost.
const Limit = 1_000_000

// An Outcome is the result of an evaluation, in a form that can be compared.
type Outcome struct {
	Value string // with its type
	Err   string
}

// String returns the value, or the error.
func (o Outcome) String() string {
	if o.Err != "" {
		return "error: " + o.Err
	}
	return o.Value
}

// Show writes a value with its type, the members of maps sorted by name.
func Show(v ref.Val) string {
	switch v := v.(type) {
	case traits.Lister:
		n := int(v.Size().(types.Int))
		items := make([]string, n)
		for i := range n {
			items[i] = Show(v.Get(types.Int(i)))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		var members []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if key == nil {
				continue // Kubernetes' iterator gives nothing for a member that the schema does not name
			}
			members = append(members, Show(key)+": "+Show(v.Get(key)))
		}
		slices.Sort(members)
		return "{" + strings.Join(members, ", ") + "}"
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
		return "optional(" + Show(v.GetValue()) + ")"
	case *types.Err:
		return "error" // within a value; Kubernetes words some by Go's types
	case types.String:
		return fmt.Sprintf("%q", string(v))
	case ref.Type:
		return "type(" + v.TypeName() + ")"
	}
	return fmt.Sprintf("%s(%v)", v.Type().TypeName(), v.Value())
}

// Decode reads JSON as Kubernetes does.
func Decode(t testing.TB, body string) any {
	t.Helper()
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(body), &v); err != nil {
		t.Fatalf("decoding %s: %v", body, err)
	}
	return v
}

// A Language is Kubernetes' environment for expressions, with what package plan needs to run them.
type Language struct {
	*celgo.Env
	plan.Language
	interpreter interpreter.Interpreter
}

// Plain is the language of expressions about objects that no schema describes, and of patches.
func Plain(t testing.TB) *Language {
	return newLanguage(t, nil, common.ResolverEnvOption(value.MadeTypes{}), library.JSONPatch(),
		celgo.Variable(plan.NameObject, celgo.DynType), celgo.Variable(plan.NameOldObject, celgo.DynType),
		celgo.Variable(plan.NameParams, celgo.DynType), celgo.Variable(plan.NameNamespaceObject, celgo.DynType))
}

// OfSchema is the language of the rules of a schema, and the type by which they see values.
func OfSchema(t testing.TB, s *structuralschema.Structural) (*Language, *value.Type) {
	decl := model.SchemaDeclType(s, true).MaybeAssignTypeName("selfType")
	l := newLanguage(t, []*apiservercel.DeclType{decl}, celgo.Variable(plan.NameSelf, decl.CelType()),
		celgo.Variable(plan.NameOldSelf, decl.CelType()))
	typ := value.NewType(s, true)
	l.Seen[value.Self], l.Seen[value.OldSelf] = typ, typ
	return l, typ
}

func newLanguage(t testing.TB, types []*apiservercel.DeclType, variables ...celgo.EnvOption) *Language {
	t.Helper()
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: variables, DeclTypes: types,
		})
	if err != nil {
		t.Fatal(err)
	}
	env := set.StoredExpressionsEnv()
	functions := interpreter.NewDispatcher()
	for _, fn := range env.Functions() {
		bindings, err := fn.Bindings()
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range bindings {
			bindings[i] = plan.Enlarged(b)
		}
		if err := functions.Add(bindings...); err != nil {
			t.Fatal(err)
		}
	}
	values := plan.Adapter{Adapter: env.CELTypeAdapter()}
	attributes := interpreter.NewAttributeFactory(env.Container, values, env.CELTypeProvider())
	return &Language{
		Env: env,
		Language: plan.Language{Types: env.CELTypeProvider(), Adapter: values, Functions: functions,
			Container: env.Container},
		interpreter: interpreter.NewInterpreter(functions, env.Container, env.CELTypeProvider(), values, attributes),
	}
}

// An Expression is compiled in three ways.
type Expression struct {
	Ast    *celgo.Ast
	Native *plan.Native // nil if there is no native plan
	Reason string       // why there is none
	lazily interpreter.InterpretableV2
	theirs celgo.Program
	sizes  int
}

// Compile compiles an expression. It returns nil if that cannot be done, or cel-go makes no plan of it.
func (l *Language) Compile(text string) (x *Expression, err error) {
	defer func() {
		if r := recover(); r != nil { // cel-go panics over literals such as {b'a': 1}
			x, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	ast, issues := l.Env.Compile(text)
	if issues != nil {
		return nil, issues.Err()
	}
	x = &Expression{Ast: ast}
	if x.theirs, err = l.Program(ast, celgo.CostLimit(4*Limit)); err != nil {
		return nil, err
	}
	rep := ast.NativeRep()
	m := plan.NewMeter(rep)
	x.lazily, err = l.interpreter.NewInterpretable(rep,
		interpreter.CustomDecoratorV2(plan.PlanAlternative),
		interpreter.Optimize(),
		interpreter.CompileRegexConstants(plan.MatchesConstant, library.FindRegexOptimization, plan.FindAllConstant),
		interpreter.CustomDecoratorV2(plan.Paths(&l.Language, rep, m).Decorate),
		interpreter.CustomDecoratorV2(m.Decorate),
		interpreter.CustomDecoratorV2(plan.NewOrders(rep).Decorate),
	)
	if err != nil {
		return nil, err
	}
	x.sizes = m.Sizes
	x.Native, x.Reason = plan.Compile(&l.Language, rep, plan.NewMeter(rep), nil)
	return x, nil
}

// Theirs evaluates the expression as Kubernetes does. It panics over some arguments that are errors.
func (x *Expression) Theirs(vars map[string]any) (o Outcome, units int64) {
	defer func() {
		if r := recover(); r != nil {
			o = Outcome{Err: fmt.Sprint("internal error: ", r)}
		}
	}()
	out, details, err := x.theirs.Eval(vars)
	if details != nil && details.ActualCost() != nil {
		units = int64(*details.ActualCost())
	}
	if err != nil {
		return Outcome{Err: err.Error()}, units
	}
	return Outcome{Value: Show(out)}, units
}

// Natively evaluates the native plan, as a value and as a condition, and returns its cost in units.
func (x *Expression) Natively(bind func(*value.Bindings)) (o Outcome, units int64) {
	m := NewMachine()
	defer m.Release()
	return x.NativelyOn(m, bind)
}

// NativelyOn is Natively on a machine that may have evaluated other expressions.
func (x *Expression) NativelyOn(m *Machine, bind func(*value.Bindings)) (o Outcome, units int64) {
	size := x.size()
	size.Native, size.Locals = true, x.Native.Locals
	o, units = m.Run(size, bind, func() plan.Val {
		v := m.Scalar(x.Native.Eval(&m.Machine))
		if v.Kind == plan.ValList && v.List().Made == nil {
			v.List().Kept = true
		}
		return v
	})
	return o, units
}

// Tested evaluates the native plan as a condition. It returns false if it is none.
func (x *Expression) Tested(bind func(*value.Bindings)) (o Outcome, ok bool) {
	if x.Native.Test == nil {
		return Outcome{}, false
	}
	m := NewMachine()
	defer m.Release()
	size := x.size()
	size.Native, size.Locals = true, x.Native.Locals
	o, _ = m.Run(size, bind, func() plan.Val {
		switch x.Native.Test(&m.Machine) {
		case plan.IsTrue:
			return m.Of(types.True)
		case plan.IsFalse:
			return m.Of(types.False)
		}
		return plan.ErrVal(m.Err)
	})
	return o, true
}

// Lazily evaluates the plan of cel-go's interpreter over lazy values, and returns its cost in units.
func (x *Expression) Lazily(bind func(*value.Bindings)) (o Outcome, units int64) {
	m := NewMachine()
	defer m.Release()
	return x.LazilyOn(m, bind)
}

// LazilyOn is Lazily on a machine that may have evaluated other expressions.
func (x *Expression) LazilyOn(m *Machine, bind func(*value.Bindings)) (o Outcome, units int64) {
	size := x.size()
	size.Sizes = x.sizes
	return m.Run(size, bind, func() plan.Val {
		frame, err := interpreter.NewExecutionFrame(m)
		if err != nil {
			panic(err) // it fails only for what is no Activation
		}
		return m.Of(x.lazily.Exec(frame))
	})
}

func (x *Expression) size() plan.FrameSize {
	var uses plan.Uses
	for _, r := range x.Ast.NativeRep().ReferenceMap() {
		uses |= plan.UsesOf[r.Name]
	}
	return plan.FrameSize{Roots: uses.Slots()}
}

// Bytes is a [value.Memory] that counts what it is asked for.
type Bytes struct {
	Peak int
	used int
}

// Grow implements value.Memory.
func (b *Bytes) Grow(n int) bool {
	b.used += n
	b.Peak = max(b.Peak, b.used)
	return true
}

// Shrink implements value.Memory.
func (b *Bytes) Shrink(n int) { b.used -= n }

// Used is what is not given back.
func (b *Bytes) Used() int { return b.used }

// Work implements value.Memory.
func (b *Bytes) Work() bool { return true }

// A Machine runs plans with the variables that hold nodes. It is an activation of cel-go.
type Machine struct {
	plan.Machine
	Bindings value.Bindings
	Asked    Bytes
}

// NewMachine makes a machine without variables.
func NewMachine() *Machine {
	m := &Machine{}
	m.Serve(m)
	m.Arena.Start(context.Background(), 1<<40)
	m.Arena.SetMemory(&m.Asked)
	return m
}

// Run runs a plan that needs so much room. The units are without those of showing the value.
func (m *Machine) Run(size plan.FrameSize, bind func(*value.Bindings), eval func() plan.Val) (o Outcome, units int64) {
	before := m.Arena.Spent()
	bind(&m.Bindings)
	var out plan.Val
	func() {
		m.Begin(&size, false, &m.Bindings, Limit)
		defer m.End()
		defer func() {
			switch r := recover().(type) {
			case nil:
			case value.Stop:
				o.Err = fmt.Sprintf("stopped: %d", r)
			default:
				o.Err = fmt.Sprint("internal error: ", r)
			}
		}()
		out = eval()
		m.Retained++
	}()
	units = m.Arena.Spent() - before
	if o.Err != "" {
		return o, units
	}
	if out.Kind == plan.ValErr {
		return Outcome{Err: fmt.Sprint(out.Ref())}, units
	}
	m.Arena.Allow(1 << 40)
	return Outcome{Value: Show(m.Ref(out))}, units
}

// Global implements plan.Variables.
func (m *Machine) Global(name string) (any, bool) { return m.ResolveName(name) }

// Composited implements plan.Variables.
func (m *Machine) Composited(int, string) (plan.Val, bool) { return plan.Val{}, false }

// Parent implements interpreter.Activation.
func (m *Machine) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (m *Machine) ResolveName(name string) (any, bool) {
	if name == plan.NameFrame {
		return &m.Machine, true
	}
	m.Arena.Charge(1)
	for slot, known := range map[value.Slot]string{
		value.Self: plan.NameSelf, value.OldSelf: plan.NameOldSelf, value.Object: plan.NameObject,
		value.OldObject: plan.NameOldObject, value.Params: plan.NameParams,
		value.NamespaceObject: plan.NameNamespaceObject,
	} {
		if known == name {
			if v, ok := m.Bindings.Value(&m.Arena, slot); ok {
				return v, true
			}
			return types.NullValue, name != plan.NameSelf && name != plan.NameOldSelf
		}
	}
	return nil, false
}

// Value is the value of the native plan on a machine, whose variables are set. It is of use until the machine is
// released.
func (x *Expression) Value(m *Machine) ref.Val {
	size := x.size()
	size.Native, size.Locals = true, x.Native.Locals
	m.Begin(&size, false, &m.Bindings, Limit)
	v := m.Ref(m.Scalar(x.Native.Eval(&m.Machine)))
	m.Retained++
	m.End()
	m.Arena.Allow(1 << 40)
	return v
}
