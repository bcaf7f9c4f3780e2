package policytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// Options say which tests are played, and how.
type Options struct {
	// Paths are files and folders with tests.
	Paths []string
	// Run matches the ids of the cases that are played; nil matches all.
	Run *regexp.Regexp
	// Update writes the expected objects that are files.
	Update bool
	// Parallel is how many gateways play at a time; 0 means one for each processor.
	Parallel int
	// Service is the gateway that gets the requests.
	Service Service
}

// A Summary says how all cases went.
type Summary struct {
	Results  []Result `json:"results"`
	Coverage Coverage `json:"coverage"`
	Passed   int      `json:"passed"`
	Failed   int      `json:"failed"`
	Skipped  int      `json:"skipped"`
	Seconds  float64  `json:"seconds"`
}

// Run plays tests. The error is Errors if the tests themselves are wrong.
func Run(ctx context.Context, o Options) (*Summary, error) {
	started := time.Now()
	p, cases, err := prepare(&o)
	if err != nil {
		return nil, err
	}
	s := &Summary{Results: p.playAll(ctx, cases)}
	for i := range p.modules {
		s.Results = append(s.Results, p.modules[i].run(ctx, o.Run, p.coverage)...)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(s.Results) == 0 {
		return nil, nothing(o.Run)
	}
	s.Coverage = p.coverage.summary()
	for _, r := range s.Results {
		switch r.Outcome {
		case Passed:
			s.Passed++
		case Failed:
			s.Failed++
		default:
			s.Skipped++
		}
	}
	s.Seconds = time.Since(started).Seconds()
	return s, nil
}

// nothing is the error if there is no case to play.
func nothing(matches *regexp.Regexp) error {
	if matches == nil {
		return errNoTests
	}
	return fmt.Errorf("no case matches the pattern '%s'", matches)
}

// prepare reads the tests, and compiles nothing yet.
func prepare(o *Options) (*player, []*testCase, error) {
	suites, err := read(o.Paths)
	if err != nil {
		return nil, nil, err
	}
	var cases []*testCase
	for _, s := range suites {
		for _, c := range s.cases {
			if o.Run == nil || o.Run.MatchString(c.id) {
				cases = append(cases, c)
			}
		}
	}
	covered := newCoverage()
	rego := readModules(o.Paths)
	inRego := rego.compile(&o.Service.Gateway, nil, covered)
	if len(suites)+len(inRego) == 0 {
		return nil, nil, errNoTests
	}
	metrics, err := telemetry.New(telemetry.Options{Version: "test"})
	if err != nil {
		return nil, nil, err
	}
	p := &player{service: &o.Service, sets: newSets(&o.Service.Gateway), rego: rego, modules: inRego, coverage: covered,
		metrics: metrics, update: o.Update, parallel: o.Parallel}
	if p.parallel <= 0 {
		p.parallel = runtime.GOMAXPROCS(0)
	}
	p.sets.observe = p.coverage.observe
	return p, cases, nil
}

// A player plays cases.
type player struct {
	service  *Service
	sets     *sets
	rego     *inRego
	modules  []moduleTest
	coverage *coverage
	metrics  *telemetry.Telemetry
	update   bool
	parallel int
}

// largestGroup is how many cases one gateway plays at most, so that the processors share the work.
const largestGroup = 100

// groups returns the cases in groups by their settings.
func groups(cases []*testCase) (all [][]*testCase) {
	open := map[string]int{}
	for _, c := range cases {
		key := c.setting.key()
		i, found := open[key]
		if !found || len(all[i]) == largestGroup {
			i = len(all)
			open[key] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], c)
	}
	return all
}

// playAll plays cases in parallel, and returns the results in the order of the cases.
func (p *player) playAll(ctx context.Context, cases []*testCase) []Result {
	results := make(map[*testCase]Result, len(cases))
	var mu sync.Mutex
	var wait sync.WaitGroup
	work := make(chan []*testCase)
	for range p.parallel {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for group := range work {
				played := p.play(group)
				mu.Lock()
				for i, c := range group {
					results[c] = played[i]
				}
				mu.Unlock()
			}
		}()
	}
	for _, group := range groups(cases) {
		select {
		case work <- group:
		case <-ctx.Done():
		}
	}
	close(work)
	wait.Wait()
	all := make([]Result, len(cases))
	for i, c := range cases {
		all[i] = results[c]
	}
	return all
}

// play plays the cases of one setting one after the other.
func (p *player) play(group []*testCase) []Result {
	results := make([]Result, len(group))
	for i, c := range group {
		results[i] = Result{File: c.file, Line: c.line, Column: c.column, ID: c.id, Outcome: Skipped}
		if c.skip != "" {
			results[i].Problems = []string{c.skip}
		}
	}
	if !slices.ContainsFunc(group, func(c *testCase) bool { return c.skip == "" && c.mistake == "" }) {
		for i, c := range group {
			if c.skip == "" {
				results[i].Outcome, results[i].Problems = Failed, []string{c.mistake}
			}
		}
		return results
	}
	all := func(problem string) []Result {
		for i, c := range group {
			if c.skip == "" && c.invalid == "" {
				results[i].Outcome, results[i].Problems = Failed, []string{problem}
			}
		}
		return results
	}
	set, found := p.sets.of(&group[0].setting)
	for i, c := range group {
		if c.invalid != "" && c.skip == "" {
			results[i].Outcome = Passed
			if results[i].Problems = c.compareInvalid(found); len(results[i].Problems) > 0 {
				results[i].Outcome = Failed
			}
		}
	}
	if set == nil {
		return all("its policies have errors: " + errorsIn(found))
	}
	e, err := newEnvironment(set, p.service, &group[0].setting, p.metrics)
	if err != nil {
		return all(err.Error())
	}
	defer e.close()
	for i, c := range group {
		if c.skip != "" || c.invalid != "" {
			continue
		}
		started := time.Now()
		if results[i].Problems = []string{c.mistake}; c.mistake == "" {
			results[i].Problems = p.playOne(e, c)
		}
		results[i].Seconds = time.Since(started).Seconds()
		results[i].Outcome = Passed
		if len(results[i].Problems) > 0 {
			results[i].Outcome = Failed
		}
	}
	return results
}

func errorsIn(found []finding.Finding) string {
	var lines []string
	for _, f := range found {
		if f.Severity == finding.Error {
			lines = append(lines, f.Text())
		}
	}
	return strings.Join(lines, "; ")
}

// playOne plays a case, and returns how it differs from what is expected.
func (p *player) playOne(e *environment, c *testCase) []string {
	if c.verdict != nil {
		problems, err := c.verdict.compare(e, c)
		if err != nil {
			return []string{err.Error()}
		}
		if len(problems) > 0 || c.Expect.Object == nil {
			return problems
		}
		c.Expect.Decision = "Allowed"
	}
	answer, err := e.play(&c.Case)
	if err != nil {
		return []string{err.Error()}
	}
	if c.violations != nil && nameOf(c.Object).Kind != "Secret" { // what is said of a Secret is withheld
		if answer.denials, err = e.denials(&c.Case); err != nil {
			return []string{err.Error()}
		}
	}
	golden, err := p.golden(c, answer)
	if err != nil {
		return []string{err.Error()}
	}
	return compare(c, answer, golden)
}

// denials returns what the policies say of the request of a case, each message as often as they say it.
func (e *environment) denials(c *testcase.Case) (all []string, err error) {
	told, _, err := e.explain(context.Background(), c, nil)
	if err != nil {
		return nil, err
	}
	if told.IsCut {
		return nil, errors.New("has more violations than can be counted")
	}
	for _, s := range told.Steps {
		for _, p := range s.Policies {
			if policies.Serves("admissionregistration.k8s.io", p.Kind) ||
				policies.Serves("admission-gateway.io", p.Kind) {
				return nil, nil // other policies than constraints: what they deny is what the answer says
			}
			if p.Verdict == string(admission.Errored) { // which is no violation
				return nil, fmt.Errorf("%s '%s' failed: %s", p.Kind, cmp.Or(p.Binding, p.Name),
					strings.Join(p.Messages, "; "))
			}
			all = append(all, p.Messages...)
		}
	}
	return all, nil
}

// play sends the request of a case as often as it says, and returns the last answer.
func (e *environment) play(c *testcase.Case) (answer *reply, err error) {
	r, stored, err := requestOf(e.gateway, e.set, e.service, c)
	if err != nil {
		return nil, err
	}
	e.limiter.Rehearse()
	for sent := int32(1); sent <= r.times; sent++ {
		if err := e.prepare(stored, c.Existing); err != nil {
			return nil, fmt.Errorf("`existing` cannot be stored: %w", err)
		}
		if answer, err = e.send(context.Background(), r); err != nil {
			return nil, fmt.Errorf("the gateway does not answer: %w", err)
		}
		if sent < r.times && answer.code == http.StatusTooManyRequests {
			return nil, fmt.Errorf("is refused by a limit when it is sent for time %d of %d", sent, r.times)
		}
	}
	return answer, nil
}
