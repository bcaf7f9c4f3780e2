package cel

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-gateway/gateway/internal/document"
)

// secret is in every string that only the stored object and the parameters have.
const secret = "SECRET"

// explained evaluates a condition and, where it is false, holds what is said of it to what must be true of anything that is
// said: it is there, bounded, worded as VAL-3 has it, tells nothing of other objects (ERR-7), and changes nothing.
func explained(t *testing.T, p *Program, set func(*Vars), hides bool) (isFalse bool) {
	t.Helper()
	f := NewFrame(context.Background())
	defer f.Release()
	v := f.Vars()
	set(v)
	holds, err := p.EvalBool(f, v)
	if holds || err != nil {
		return false
	}
	before := f.Budget()
	found := p.Explain(f, v)
	if used := before - f.Budget(); used < 0 || used > ExpressionLimit {
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
			if strings.Contains(err.Detail, "``") || strings.Contains(err.Detail, "  ") || strings.Contains(err.Detail, "%!") {
				t.Errorf("%s: %q", p.Source(), err.Detail)
			}
		}
	}
	if again := written(p.Explain(f, v)); again != written(found) {
		t.Errorf("%s: said\n%s\nand then\n%s", p.Source(), written(found), again)
	}
	if holds, err := p.EvalBool(f, v); holds || err != nil {
		t.Errorf("%s: holds %v, %v after it was explained", p.Source(), holds, err)
	}
	return true
}

var (
	quotedParts    = regexp.MustCompile("`[^`]*`|'[^']*'")
	unconventional = regexp.MustCompile(`(?i)\b(should|shall|cannot|can't|larger|bigger|more than|fewer than|higher than)\b|[<>]`)
)

// shaped makes an object whose fields have the types that conditions expect of them, where they are set.
func (g *generator) shaped() string {
	var members []string
	for _, m := range [][]string{
		{"n", "1", "7", "-3"}, {"s", `"a"`, `"x"`, `"b.example"`, `""`}, {"b", "true", "false"}, {"m", `{"a":"x","b":"a"}`, "{}", `{"x":"b"}`},
		{"l", `["a","b","b"]`, `["x"]`, "[]"}, {"c", `[{"name":"a","n":1},{"name":"b"}]`, `[{"name":"x","n":9}]`, "[]"},
	} {
		if g.pick(5) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", m[0], g.of(m[1:]...)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// condition makes a condition about shaped objects, as authors write them.
func (g *generator) condition(depth int) string {
	root := g.of("object", "object", "object", "oldObject", "params")
	number, text := root+".n", root+".s"
	if depth <= 0 {
		switch g.pick(12) {
		case 0:
			return fmt.Sprintf("%s %s %s", number, g.of("<", "<=", ">", ">=", "==", "!="), g.of("3", "0", "object.n", "oldObject.n", "params.n", "size("+text+")"))
		case 1:
			return number + " in [1, 2, 3]"
		case 2:
			return fmt.Sprintf("%s %s %s", text, g.of("==", "!="), g.of("'a'", "object.s", "oldObject.s", "params.s", "params.m.a"))
		case 3:
			return fmt.Sprintf("%s.%s(%s)", text, g.of("startsWith", "endsWith", "contains", "matches"), g.of("'a'", "'x'", "params.s"))
		case 4:
			return fmt.Sprintf("has(%s.%s)", root, g.of("n", "s", "b", "m", "l", "c", "m.a"))
		case 5:
			return root + ".b"
		case 6:
			return fmt.Sprintf("size(%s.%s) %s %s", root, g.of("l", "c", "m", "s"), g.of("<", "<=", ">", ">=", "==", "!="), g.of("0", "1", "2", "params.n"))
		case 7:
			return fmt.Sprintf("%s in %s.%s", g.of("'a'", "object.s", "params.s"), root, g.of("l", "m"))
		case 8:
			return fmt.Sprintf("%s in %s", text, g.of("['a','b']", "params.l", "oldObject.l", "params.m"))
		case 9:
			return fmt.Sprintf("%s.%s == %s.%[2]s", root, g.of("l", "m", "c"), g.of("object", "oldObject", "params"))
		case 10:
			return fmt.Sprintf("%s.c.%s(i, %s)", root, g.of("all", "exists", "exists_one"), g.of("i.n > 2", "has(i.n)", "!has(i.n) || i.n < 5", "i.name != params.s", "i.name in params.l", "i.name.startsWith('a')"))
		default:
			return fmt.Sprintf("%s.%s.%s(i, %s)", root, g.of("l", "m"), g.of("all", "exists", "exists_one"), g.of("i != 'a'", "i in ['a']", "i == params.s", "size(i) > 3", "i.matches('^a')", "i in params.l"))
		}
	}
	switch g.pick(7) {
	case 0:
		return "!(" + g.condition(depth-1) + ")"
	case 1:
		return fmt.Sprintf("(%s ? %s : %s)", g.condition(depth-2), g.condition(depth-1), g.of("true", g.condition(depth-1)))
	case 2:
		return fmt.Sprintf("(!has(%s.n) || %s)", root, g.condition(depth-1))
	case 3, 4:
		return fmt.Sprintf("(%s || %s)", g.condition(depth-1), g.condition(depth-1))
	default:
		return fmt.Sprintf("(%s && %s)", g.condition(depth-1), g.condition(depth-1))
	}
}

// generatedConditions explains conditions that nobody wrote.
func generatedConditions(t testing.TB) func(t *testing.T, seed []byte) bool {
	compiler := NewAdmissionCompiler(true)
	return func(t *testing.T, seed []byte) bool {
		g := ofObjects(seed)
		g.roots = append(g.roots, "params", "params.l")
		object, old := g.shaped(), g.shaped()
		hidden := strings.NewReplacer(`"a"`, `"`+secret+`a"`, `"b"`, `"`+secret+`b"`, `"x"`, `"`+secret+`x"`)
		nodes := [3]document.Node{parse(t, object), parse(t, old), parse(t, hidden.Replace(g.shaped()))}
		isFalse := false
		for _, expression := range []string{g.condition(2), g.condition(3), "!(" + g.condition(2) + ")", g.value(3), "!(" + g.value(3) + ")"} {
			p, err := compiler.Condition(expression)
			if err != nil {
				continue
			}
			isFalse = explained(t, p, func(v *Vars) {
				v.Set(Object, nodes[0], nil)
				v.Set(OldObject, nodes[1], nil)
				v.Set(Params, nodes[2], nil)
			}, true) || isFalse
		}
		return isFalse
	}
}

// TestExplainGenerated explains many conditions that nobody wrote.
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
	bodies := requestBodies(t)
	var nodes []document.Node
	for _, body := range bodies {
		if d, err := document.Parse([]byte(body), document.Limits{}); err == nil {
			nodes = append(nodes, d.Root())
		}
	}
	count, worded := 0, 0
	unworded := map[string]int{}
	for _, raw := range policyDocuments(t) {
		var policy admissionv1.ValidatingAdmissionPolicy
		if json.Unmarshal(raw, &policy) != nil || policy.Kind != "ValidatingAdmissionPolicy" {
			continue
		}
		compiler := NewAdmissionCompiler(policy.Spec.ParamKind != nil)
		for _, v := range policy.Spec.Variables {
			_ = compiler.Variable(v.Name, v.Expression)
		}
		for _, validation := range policy.Spec.Validations {
			p, err := compiler.Condition(validation.Expression)
			if err != nil || validation.Expression == "false" {
				continue // of "false" there is nothing to say
			}
			for _, node := range nodes {
				f := NewFrame(context.Background())
				v := f.Vars()
				v.Set(Object, node, nil)
				v.Set(Params, parse(t, `{"settings":{},"data":{}}`), nil)
				v.SetRequest(&Request{Operation: "CREATE"})
				if variables := compiler.Variables(); variables != nil {
					f.OpenVariables(v, variables)
				}
				if holds, err := p.EvalBool(f, v); !holds && err == nil {
					count++
					found := p.Explain(f, v)
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
