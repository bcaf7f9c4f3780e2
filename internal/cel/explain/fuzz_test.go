package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// secret is in every string that only the stored object and the parameters have.
const secret = "SECRET"

// explained evaluates a condition and, if it is false, checks its explanation: it is there,
// bounded, worded as VAL-3 has it, shows nothing of other objects (ERR-7), and changes nothing.
func explained(t *testing.T, p *cel.Program, x *Explanation, set func(*cel.Vars), hides bool) (isFalse bool) {
	t.Helper()
	f := cel.NewFrame(context.Background())
	defer f.Release()
	v := f.Vars()
	set(v)
	ok, err := p.EvalBool(f, v)
	if ok || err != nil {
		return false
	}
	before := f.Budget()
	found := x.Explain(f, v)
	if used := before - f.Budget(); used < 0 || used > cel.ExpressionLimit {
		t.Errorf("%s: used %d units to explain", p.Source(), used)
	}
	if len(found) == 0 || len(found) > MaxItems {
		t.Errorf("%s: %d violations", p.Source(), len(found))
	}
	for _, x := range found {
		if !x.Worded() && x.Source == "" && len(found) > 1 {
			t.Errorf("%s: one of the violations says nothing", p.Source())
		}
		if len(x.Items) > MaxItems {
			t.Errorf("%s: %d items", p.Source(), len(x.Items))
		}
		for _, err := range append(x.Items, &x.Error) {
			detail := quotedParts.ReplaceAllString(err.Detail, "")
			if bad := unconventional.FindString(detail); bad != "" {
				t.Errorf("%s: %q has %q in it", p.Source(), err.Detail, bad)
			}
			if hides && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: tells what nobody may see: %v", p.Source(), err)
			}
			if strings.Contains(err.Detail, "``") || strings.Contains(err.Detail, "  ") ||
				strings.Contains(err.Detail, "%!") {
				t.Errorf("%s: %q", p.Source(), err.Detail)
			}
		}
	}
	if again := written(x.Explain(f, v)); again != written(found) {
		t.Errorf("%s: said\n%s\nand then\n%s", p.Source(), written(found), again)
	}
	if ok, err := p.EvalBool(f, v); ok || err != nil {
		t.Errorf("%s: ok %v, %v after it was explained", p.Source(), ok, err)
	}
	return true
}

var (
	quotedParts    = regexp.MustCompile("`[^`]*`|'[^']*'")
	unconventional = regexp.MustCompile(`(?i)\b(should|shall|cannot|can't|larger|bigger|more than|fewer than|higher than)\b|[<>]`)
)

// shaped makes an object whose fields have the types that conditions expect of them, if they are
// set.
func shaped(g *celtest.Generator) string {
	var members []string
	for _, m := range [][]string{
		{"n", "1", "7", "-3"}, {"s", `"a"`, `"x"`, `"b.example"`, `""`}, {"b", "true", "false"},
		{"m", `{"a":"x","b":"a"}`, "{}", `{"x":"b"}`},
		{"l", `["a","b","b"]`, `["x"]`, "[]"}, {"c", `[{"name":"a","n":1},{"name":"b"}]`, `[{"name":"x","n":9}]`, "[]"},
	} {
		if g.Pick(5) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", m[0], g.Of(m[1:]...)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// generated makes a condition about shaped objects, as authors write them.
func generated(g *celtest.Generator, depth int) string {
	root := g.Of("object", "object", "object", "oldObject", "params")
	number, text := root+".n", root+".s"
	if depth <= 0 {
		switch g.Pick(12) {
		case 0:
			return fmt.Sprintf("%s %s %s", number, g.Of("<", "<=", ">", ">=", "==", "!="),
				g.Of("3", "0", "object.n", "oldObject.n", "params.n", "size("+text+")"))
		case 1:
			return number + " in [1, 2, 3]"
		case 2:
			return fmt.Sprintf("%s %s %s", text, g.Of("==", "!="),
				g.Of("'a'", "object.s", "oldObject.s", "params.s", "params.m.a"))
		case 3:
			return fmt.Sprintf("%s.%s(%s)", text, g.Of("startsWith", "endsWith", "contains", "matches"),
				g.Of("'a'", "'x'", "params.s"))
		case 4:
			return fmt.Sprintf("has(%s.%s)", root, g.Of("n", "s", "b", "m", "l", "c", "m.a"))
		case 5:
			return root + ".b"
		case 6:
			return fmt.Sprintf("size(%s.%s) %s %s", root, g.Of("l", "c", "m", "s"),
				g.Of("<", "<=", ">", ">=", "==", "!="), g.Of("0", "1", "2", "params.n"))
		case 7:
			return fmt.Sprintf("%s in %s.%s", g.Of("'a'", "object.s", "params.s"), root, g.Of("l", "m"))
		case 8:
			return fmt.Sprintf("%s in %s", text, g.Of("['a','b']", "params.l", "oldObject.l", "params.m"))
		case 9:
			return fmt.Sprintf("%s.%s == %s.%[2]s", root, g.Of("l", "m", "c"), g.Of("object", "oldObject", "params"))
		case 10:
			return fmt.Sprintf("%s.c.%s(i, %s)", root, g.Of("all", "exists", "exists_one"),
				g.Of("i.n > 2", "has(i.n)", "!has(i.n) || i.n < 5", "i.name != params.s", "i.name in params.l",
					"i.name.startsWith('a')"))
		default:
			return fmt.Sprintf("%s.%s.%s(i, %s)", root, g.Of("l", "m"), g.Of("all", "exists", "exists_one"),
				g.Of("i != 'a'", "i in ['a']", "i == params.s", "size(i) > 3", "i.matches('^a')", "i in params.l"))
		}
	}
	switch g.Pick(7) {
	case 0:
		return "!(" + generated(g, depth-1) + ")"
	case 1:
		return fmt.Sprintf("(%s ? %s : %s)", generated(g, depth-2), generated(g, depth-1),
			g.Of("true", generated(g, depth-1)))
	case 2:
		return fmt.Sprintf("(!has(%s.n) || %s)", root, generated(g, depth-1))
	case 3, 4:
		return fmt.Sprintf("(%s || %s)", generated(g, depth-1), generated(g, depth-1))
	default:
		return fmt.Sprintf("(%s && %s)", generated(g, depth-1), generated(g, depth-1))
	}
}

// generatedConditions explains generated conditions.
func generatedConditions(t testing.TB) func(t *testing.T, seed []byte) bool {
	compiler := NewCompiler(cel.NewAdmissionCompiler(true))
	return func(t *testing.T, seed []byte) bool {
		g := celtest.OfObjects(seed)
		g.Roots = append(g.Roots, "params", "params.l")
		object, old := shaped(g), shaped(g)
		hidden := strings.NewReplacer(`"a"`, `"`+secret+`a"`, `"b"`, `"`+secret+`b"`, `"x"`, `"`+secret+`x"`)
		nodes := [3]document.Node{celtest.Parse(t, object), celtest.Parse(t, old),
			celtest.Parse(t, hidden.Replace(shaped(g)))}
		isFalse := false
		for _, expression := range []string{generated(g, 2), generated(g, 3), "!(" + generated(g, 2) + ")", g.Value(3),
			"!(" + g.Value(3) + ")"} {
			p, x, err := compiler.Condition(expression)
			if err != nil {
				continue
			}
			isFalse = explained(t, p, x, func(v *cel.Vars) {
				v.Set(value.Object, nodes[0], nil)
				v.Set(value.OldObject, nodes[1], nil)
				v.Set(value.Params, nodes[2], nil)
			}, true) || isFalse
		}
		return isFalse
	}
}

// TestExplainGenerated explains many generated conditions.
func TestExplainGenerated(t *testing.T) {
	explain := generatedConditions(t)
	random := rand.New(rand.NewPCG(3, 4))
	count := 0
	for range 1000 {
		seed := make([]byte, 200)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		if explain(t, seed) {
			count++
		}
	}
	t.Logf("%d conditions were explained", count)
	if count < 500 {
		t.Errorf("only %d conditions were explained", count)
	}
}

// FuzzExplain explains conditions and objects made of bytes.
func FuzzExplain(f *testing.F) {
	for i := range 20 {
		f.Add([]byte(strings.Repeat(string(rune('a'+i)), 60)))
	}
	explain := generatedConditions(f)
	f.Fuzz(func(t *testing.T, seed []byte) { explain(t, seed) })
}

// TestExplainSuites explains the policies of the suites about the objects of the suites.
func TestExplainSuites(t *testing.T) {
	bodies := celtest.RequestBodies(t)
	var nodes []document.Node
	for _, body := range bodies {
		if d, err := document.Parse([]byte(body), document.Limits{}); err == nil {
			nodes = append(nodes, d.Root())
		}
	}
	count, worded := 0, 0
	unworded := map[string]int{}
	for _, raw := range celtest.PolicyDocuments(t) {
		var policy admissionv1.ValidatingAdmissionPolicy
		if json.Unmarshal(raw, &policy) != nil || policy.Kind != "ValidatingAdmissionPolicy" {
			continue
		}
		compiler := NewCompiler(cel.NewAdmissionCompiler(policy.Spec.ParamKind != nil))
		for _, v := range policy.Spec.Variables {
			_ = compiler.Variable(v.Name, v.Expression)
		}
		for _, validation := range policy.Spec.Validations {
			p, x, err := compiler.Condition(validation.Expression)
			if err != nil || validation.Expression == "false" {
				continue // of "false" there is nothing to say
			}
			for _, node := range nodes {
				f := cel.NewFrame(context.Background())
				v := f.Vars()
				v.Set(value.Object, node, nil)
				v.Set(value.Params, celtest.Parse(t, `{"settings":{},"data":{}}`), nil)
				v.SetRequest(&cel.Request{Operation: "CREATE"})
				if variables := compiler.Variables(); variables != nil {
					f.OpenVariables(v, variables)
				}
				if ok, err := p.EvalBool(f, v); !ok && err == nil {
					count++
					found := x.Explain(f, v)
					if found[0].Worded() || len(found[0].Items) > 0 {
						worded++
					} else {
						unworded[p.Source()]++
					}
				}
				f.CloseVariables(v)
				f.Release()
			}
		}
	}
	t.Logf("%d failures, %d of them in words", count, worded)
	if count < 50 || worded < count*9/10 {
		t.Errorf("%d of %d failures are in words; not these: %v", worded, count, unworded)
	}
}
