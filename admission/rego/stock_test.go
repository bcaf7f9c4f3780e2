package rego

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/admission-gateway/gateway/admission/rego/regotest"
)

// A stock is OPA as it comes: its compiler of the text of modules, its store and its evaluator, with
// nothing of ours between.
type stock struct {
	compiler *ast.Compiler
	store    storage.Store
}

// fixed is the document data of the tests beside stock OPA.
const fixed = `{"fixed":{"a":1,"list":["a","b",2],"map":{"a":{"b":1},"1":"x"}}}`

func newStock(t testing.TB, text string) *stock {
	t.Helper()
	s := &stock{store: inmem.NewFromObject(decoded(t, []byte(fixed)).(map[string]any))}
	var err error
	if s.compiler, err = ast.CompileModules(map[string]string{"policy.rego": text}); err != nil {
		t.Fatal(err)
	}
	return s
}

// value returns the value of a rule as JSON, or the error as code, place and message, in the words
// that clients see. If errors of built-in functions are strict, they count as errors.
func (s *stock) value(t testing.TB, rule string, review, parameters any, strict bool) string {
	t.Helper()
	term, err := ast.InterfaceToValue(map[string]any{"review": review, "parameters": parameters})
	if err != nil {
		t.Fatal(err)
	}
	found, err := rego.New(rego.Query("result = "+rule), rego.Compiler(s.compiler), rego.Store(s.store),
		rego.ParsedInput(term), rego.StrictBuiltinErrors(strict)).Eval(context.Background())
	var failed *topdown.Error
	switch {
	case errors.As(err, &failed):
		message, _, _ := strings.Cut(failed.Message, "\n")
		return fmt.Sprintf("!policy.rego:%d:%d: %s: %s", failed.Location.Row, failed.Location.Col, failed.Code,
			worded(strings.TrimSuffix(message, ":")))
	case err != nil:
		t.Fatal(err)
	case len(found) == 0:
		return "undefined"
	}
	raw, err := json.Marshal(found[0].Bindings["result"])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// valueOf returns the value of a query as [stock.value] does.
func valueOf(t testing.TB, q *Query, in *Input) string {
	t.Helper()
	v, err := q.Value(context.Background(), in)
	switch {
	case errors.Is(err, ErrUndefined):
		return "undefined"
	case err != nil:
		return "!" + strings.TrimPrefix(err.Error(), q.rule+": ")
	}
	raw, err := v.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	normal, err := json.Marshal(decoded(t, raw))
	if err != nil {
		t.Fatal(err)
	}
	return string(normal)
}

// TestStock: the rules of random modules have the values, and the errors, that they have by OPA as it
// comes, for random requests, with parameters as constraints have them. STOCK_ROUNDS asks for more
// modules than the 400 of each run: 3000 are more than 50,000 evaluations.
func TestStock(t *testing.T) {
	counts := tally{}
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	if n, err := strconv.Atoi(os.Getenv("STOCK_ROUNDS")); err == nil {
		rounds = n
	}
	for i := range rounds {
		counts.compare(t, rand.New(rand.NewPCG(uint64(i), 12)))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d evaluations beside OPA, %d of them by plans; %d failed, %d were ended", counts.all, counts.native,
		counts.failed, counts.ended)
	if counts.native < counts.all/2 || counts.failed == 0 || counts.ended > counts.all/100 {
		t.Error("too few evaluations were made by plans, or failed, or too many were ended")
	}
}

// A tally counts evaluations.
type tally struct{ all, native, failed, ended int }

// compare writes a module by the grammar, and compares its rules with stock OPA's.
func (c *tally) compare(t *testing.T, r *rand.Rand) {
	g := &regotest.Grammar{Rand: r}
	compile := func(text string) (*Program, error) {
		return Compile(Options{Data: parsed(t, []byte(fixed))}, Module{File: "policy.rego", Source: []byte(text)})
	}
	text := g.Module(func(text string) bool {
		_, err := compile(text)
		return err == nil
	})
	p, err := compile(text)
	if err != nil {
		t.Fatal(err)
	}
	opa := newStock(t, text)
	if mayCycle(opa.compiler) {
		return // OPA as it comes may end the process
	}
	example := decoded(t, []byte(`{"a":1,"b":"x","list":[1,"x",[1,2],{"a":3}],"map":{"a":1,"b":{"a":2},"c":[3]},"on":true,
		"k":{"one":1,"two":2,"x":"x","a":"a","yes":true,"no":false}}`))
	given := decoded(t, []byte(`{"a":"x","b":2,"list":["x",1,[1,2]],"map":{"a":1,"b":{"a":2}},"most":2}`))
	for rule, kind := range g.Kinds {
		name := fmt.Sprintf("data.t.r%d", rule)
		if kind == "function" || !p.Has(name) {
			continue
		}
		q, err := p.Query(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			review, parameters := example, given
			if i > 0 {
				review, parameters = regotest.Changed(example, r), regotest.Changed(given, r)
			}
			bound, strict := q.With(encoded(t, parameters)), r.IntN(4) > 0
			if !strict {
				bound = bound.Lenient()
			}
			in := Input{Review: read(t, []byte(raw(t, review)))}
			got, want := valueOf(t, bound, &in), opa.value(t, name, review, parameters, strict)
			if c.all++; q.native != nil {
				c.native++
			}
			if strings.HasPrefix(want, "!") {
				c.failed++
			}
			if got == "!"+errBudget.Error() {
				c.ended++ // stock OPA has no bound
				continue
			}
			if got != want && !bothConflict(got, want) {
				t.Errorf("%s with review %s and parameters %s, native: %v, strict: %v\ngot  %s\nwant %s", name,
					raw(t, review), raw(t, parameters), q.native != nil, strict, got, want)
			}
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func raw(t testing.TB, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bothConflict reports whether both evaluations failed, at least one of them by two values of a rule.
// OPA goes on with the first value before it looks for a second one, and may find another error there.
func bothConflict(a, b string) bool {
	return strings.HasPrefix(a, "!") && strings.HasPrefix(b, "!") &&
		(strings.Contains(a, topdown.ConflictErr) || strings.Contains(b, topdown.ConflictErr))
}

// FuzzStock writes a module by a grammar, and compares its rules with OPA as it comes.
func FuzzStock(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		new(tally).compare(t, rand.New(rand.NewPCG(a, b)))
	})
}
