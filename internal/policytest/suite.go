// Package policytest plays the cases of policy tests through a gateway in this process, in front of
// a backend in memory: as a policy answers a test, so it answers requests in service.
package policytest

import (
	"encoding/json"
	"regexp"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// A suite is a file of tests.
type suite struct {
	file  string
	cases []*testCase
}

// A testCase is one case, whatever the form of the file that it is from.
type testCase struct {
	testcase.Case
	// file, line and column are its place; id is its full name.
	file, id     string
	line, column int
	setting      setting
	// files are what it was read from, beside its own file and the policies.
	files []string
	// skip says why the case cannot be played; empty if it can.
	skip string
	// mistake says what is wrong with the suite, so that the case fails; empty if nothing is.
	mistake string
	// invalid is the file of a constraint that has to be invalid, for a case that asks for no more; "" for all others.
	invalid string
	// verdict is what is expected of one policy, for suites that say it in place of a decision; nil if they do not.
	verdict *verdict
	// violations say how many violations there are, for suites that count them in place of a decision; nil if they do
	// not matter.
	violations []violations
}

// violations is how many causes or warnings an answer may have whose messages match; nil counts all.
type violations struct {
	least, most int
	message     *regexp.Regexp
}

// at sets the place of the case, the value at a path of an object.
func (c *testCase) at(o *manifest.Object, path string) {
	place := o.Where(path)
	c.line, c.column = place.Line, place.Column
}

// A setting is shared by the cases that are played through one gateway.
type setting struct {
	// Paths are the policy files and folders.
	Paths []string
	// Dialect of the backend; empty for the one that suits the files.
	Dialect string
	// Objects are further objects, which policies refer to.
	Objects []json.RawMessage
	// Denies says that constraints deny, whatever their actions are: gator counts violations of all actions.
	Denies bool
	State  map[string][]json.RawMessage
}

// key identifies settings.
func (s *setting) key() string {
	key, _ := json.Marshal(s) // raw JSON that was read once can be written
	return string(key)
}

// A Result says how a case went.
type Result struct {
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Column  int     `json:"column,omitempty"`
	ID      string  `json:"id"`
	Outcome Outcome `json:"outcome"`
	// Problems are the differences from what is expected, or why the case was skipped.
	Problems []string `json:"problems,omitempty"`
	Seconds  float64  `json:"seconds"`
}

// An Outcome is how a case ended.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)
