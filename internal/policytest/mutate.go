package policytest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/admission-gateway/gateway/policies/source"
)

// A Mutant is a change of a policy.
type Mutant struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column,omitempty"`
	// Field is the path of the changed field, or the name of the changed rule in Rego.
	Field string `json:"field"`
	// Change says what was changed into what.
	Change string `json:"change"`
	// Outcome is Killed, Survived or Invalid.
	Outcome Outcome       `json:"outcome"`
	make    func() []byte // the content of the file
}

// The outcomes of changes.
const (
	// Killed says that a test fails with the change.
	Killed Outcome = "killed"
	// Survived says that no test does.
	Survived Outcome = "survived"
	// Invalid says that the changed file has errors.
	Invalid Outcome = "invalid"
)

// A Survey says which changes of policies the tests notice.
type Survey struct {
	Mutants  []Mutant `json:"mutants"`
	Killed   int      `json:"killed"`
	Survived int      `json:"survived"`
	Invalid  int      `json:"invalid"`
}

// Percent returns the share of the valid changes that are killed, in percent, rounded down.
func (s *Survey) Percent() int { return CoverageCount{s.Killed, s.Killed + s.Survived}.Percent() }

// Mutate changes the policies in one place at a time, and plays the tests of each.
func Mutate(ctx context.Context, o Options) (*Survey, error) {
	o.Update = false
	p, cases, err := prepare(&o)
	if err != nil {
		return nil, err
	}
	p.sets.observe, p.coverage = nil, nil
	results := p.playAll(ctx, cases)
	for i := range p.modules {
		results = append(results, p.modules[i].run(ctx, o.Run, nil)...)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return nil, nothing(o.Run)
	}
	failing := 0
	for _, r := range results {
		if r.Outcome == Failed {
			failing++
		}
	}
	if failing > 0 {
		return nil, fmt.Errorf("%d cases fail before anything is changed: make them pass first", failing)
	}
	t := &trials{player: p, matching: o.Run, cases: map[string][]*testCase{}, modules: map[string]bool{}}
	files := map[string]source.File{}
	for _, c := range cases {
		if c.skip != "" {
			continue
		}
		for _, f := range p.sets.read(c.setting.Paths).Files {
			files[f.Name] = f
			t.cases[f.Name] = append(t.cases[f.Name], c)
		}
	}
	for _, f := range p.rego.files {
		for i := range p.modules {
			if p.modules[i].Has(f.Name) {
				files[f.Name], t.modules[f.Name] = f, true
			}
		}
	}
	s := &Survey{Mutants: []Mutant{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s.Mutants = append(s.Mutants, mutantsOf(files[name])...)
	}
	t.run(ctx, s)
	return s, ctx.Err()
}

// trials play the tests of changed files.
type trials struct {
	*player
	matching *regexp.Regexp
	// cases are the cases that each file decides, modules the files whose rules tests in Rego evaluate.
	cases   map[string][]*testCase
	modules map[string]bool
}

// run plays the tests of each change.
func (t *trials) run(ctx context.Context, s *Survey) {
	var wait sync.WaitGroup
	next := make(chan *Mutant)
	for range t.parallel {
		wait.Go(func() {
			for m := range next {
				m.Outcome = t.outcome(ctx, m)
			}
		})
	}
	for i := range s.Mutants {
		select {
		case next <- &s.Mutants[i]:
		case <-ctx.Done():
		}
	}
	close(next)
	wait.Wait()
	for _, m := range s.Mutants {
		switch m.Outcome {
		case Killed:
			s.Killed++
		case Survived:
			s.Survived++
		case Invalid:
			s.Invalid++
		}
	}
}

// outcome plays the tests of a change until one fails.
func (t *trials) outcome(ctx context.Context, m *Mutant) Outcome {
	changed := map[string][]byte{m.File: m.make()}
	with := &player{service: t.service, sets: newSets(t.sets.gateway), metrics: t.metrics, parallel: 1}
	with.sets.changed = changed
	for _, group := range groups(t.cases[m.File]) {
		if set, _ := with.sets.of(&group[0].setting); set == nil {
			return Invalid
		}
		for _, r := range with.play(group) {
			if r.Outcome == Failed {
				return Killed
			}
		}
	}
	if !t.modules[m.File] {
		return Survived
	}
	for _, suite := range t.rego.compile(t.sets.gateway, changed, nil) {
		if !suite.Has(m.File) {
			continue
		}
		found, err := suite.test(ctx, nil)
		if err != nil {
			return Invalid
		}
		for _, r := range suite.results(found, t.matching) {
			if r.Outcome == Failed {
				return Killed
			}
		}
	}
	return Survived
}
