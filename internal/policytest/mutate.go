package policytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/source"
)

// A Mutant is a change of a policy.
type Mutant struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Field string `json:"field"`
	// Change says what was changed into what.
	Change string `json:"change"`
	data   []byte // of the file
}

// A Survey says which changes of policies the tests notice.
type Survey struct {
	// Noticed counts the changes that made a case fail, Invalid the ones that do not compile.
	Noticed int `json:"noticed"`
	Invalid int `json:"invalid"`
	// Survivors are the changes that no case noticed.
	Survivors []Mutant `json:"survivors"`
}

// Mutate changes operators and bounds of the policies one at a time, and plays the tests of each.
func Mutate(ctx context.Context, o Options) (*Survey, error) {
	o.Update = false
	p, cases, err := prepare(&o)
	if err != nil {
		return nil, err
	}
	switch {
	case len(cases) == 0 && len(p.modules) > 0 && o.Run == nil:
		return nil, errors.New("no case of a PolicyTest is played: what the tests in Rego notice is not asked")
	case len(cases) == 0:
		return nil, nothing(o.Run)
	}
	p.sets.observe = nil
	byFile, failing := map[string][]*testCase{}, 0
	for _, r := range p.playAll(ctx, cases) {
		if r.Outcome == Failed {
			failing++
		}
	}
	if failing > 0 {
		return nil, fmt.Errorf("%d cases fail before anything is changed: make them pass first", failing)
	}
	files := map[string]source.File{}
	for _, c := range cases {
		if c.skip != "" {
			continue
		}
		for _, f := range p.sets.read(c.setting.Paths).Files {
			files[f.Name] = f
			byFile[f.Name] = append(byFile[f.Name], c)
		}
	}
	var mutants []Mutant
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mutants = append(mutants, mutantsOf(files[name])...)
	}
	return p.survey(ctx, mutants, byFile), ctx.Err()
}

// survey plays the tests of each mutant.
func (p *player) survey(ctx context.Context, mutants []Mutant, byFile map[string][]*testCase) *Survey {
	s := &Survey{}
	survived := make([]bool, len(mutants))
	var mu sync.Mutex
	var wait sync.WaitGroup
	next := make(chan int)
	for range p.parallel {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range next {
				noticed, valid := p.notices(&mutants[i], byFile[mutants[i].File])
				mu.Lock()
				switch {
				case !valid:
					s.Invalid++
				case noticed:
					s.Noticed++
				default:
					survived[i] = true
				}
				mu.Unlock()
			}
		}()
	}
	for i := range mutants {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wait.Wait()
	for i, m := range mutants {
		if survived[i] {
			s.Survivors = append(s.Survivors, m)
		}
	}
	return s
}

// notices reports whether a case fails with a mutant; valid reports whether the mutant compiles.
func (p *player) notices(m *Mutant, cases []*testCase) (noticed, valid bool) {
	with := &player{service: p.service, sets: newSets(p.sets.gateway), metrics: p.metrics, parallel: 1}
	with.sets.changed = map[string][]byte{m.File: m.data}
	for _, group := range groups(cases) {
		if set, _ := with.sets.of(&group[0].setting); set == nil {
			return false, false
		}
		for _, r := range with.play(group) {
			if r.Outcome == Failed {
				return true, true
			}
		}
	}
	return false, true
}

// expressions are the members that hold expressions, bounds the keywords of schemas that hold limits.
var (
	expressions = []string{"rule", "expression", "when", "valueExpression", "keyExpression"}
	bounds      = []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)

// mutantsOf returns the changes of a file.
func mutantsOf(f source.File) (all []Mutant) {
	if f.Role != source.Objects {
		return nil
	}
	objects, _ := manifest.Read(f.Name, f.Data)
	for i, o := range objects {
		var visit func(n document.Node)
		visit = func(n document.Node) {
			for m := n.First(); m.Valid(); m = m.Next() {
				if n.Kind() == document.Object {
					for _, c := range changesOf(m) {
						all = append(all, Mutant{f.Name, o.Line(m.Path()), m.Path(), c.what, replaced(objects, i, m, c.value)})
					}
				}
				visit(m)
			}
		}
		visit(o.Document().Root())
	}
	return all
}

// replaced returns the file as JSON, with another value at one place.
func replaced(objects []*manifest.Object, at int, n document.Node, value any) []byte {
	var out []byte
	path := n.Path()
	for i, o := range objects {
		if i > 0 {
			out = append(out, "\n---\n"...)
		}
		if i != at {
			out = append(out, o.JSON...)
			continue
		}
		d := o.Document().Clone()
		raw, _ := json.Marshal(value) // a string or a number
		if in, ok := find(d.Root(), path); ok {
			d.Replace(in, raw)
		}
		out = d.AppendTo(out)
		d.Release()
	}
	return out
}

// find finds the value at a path that a node of the same document gave.
func find(n document.Node, path string) (document.Node, bool) {
	for m := n.First(); m.Valid(); m = m.Next() {
		if m.Path() == path {
			return m, true
		}
		if strings.HasPrefix(path, m.Path()) {
			if found, ok := find(m, path); ok {
				return found, true
			}
		}
	}
	return document.Node{}, false
}

type change struct {
	what  string
	value any
}

// changesOf returns what is changed of a member.
func changesOf(n document.Node) (all []change) {
	switch key := n.Key(); {
	case slices.Contains(expressions, key) && n.Kind() == document.String:
		for _, c := range changesIn(n.Str()) {
			all = append(all, change{c.what, c.value})
		}
	case slices.Contains(bounds, key) && n.Kind() == document.Number:
		number, err := strconv.ParseFloat(string(n.Raw()), 64)
		if err != nil {
			return nil
		}
		by := 1.0
		if strings.HasPrefix(key, "min") {
			by = -1
		}
		all = append(all, change{fmt.Sprintf("%v to %v", number, number+by), number + by})
	}
	return all
}
