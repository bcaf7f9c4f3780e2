package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/testcase"
)

const (
	// maxTested bounds how many operations are tested, maxTried how many are tried, and maxSpoiled how many wrong
	// requests of each.
	maxTested, maxTried, maxSpoiled = 20, 300, 12
)

// play finds cases by playing requests: for each operation one that is admitted and one that is refused, or what
// clients sent.
func (d *described) play(set *policies.Set) (cases []*testcase.Case, err error) {
	trial, err := policytest.NewTrial(set)
	if err != nil {
		return nil, err
	}
	defer trial.Close()
	tested := 0
	for i := range d.operations {
		if tested == maxTested || i == maxTried {
			break
		}
		found := d.casesOf(trial, &d.operations[i])
		if len(found) > 0 {
			tested++
		}
		cases = append(cases, found...)
	}
	return cases, nil
}

// casesOf finds the cases of an operation.
func (d *described) casesOf(trial *policytest.Trial, o *operation) (found []*testcase.Case) {
	name := o.method + " " + o.path
	sent := d.recorded[name]
	for i := range sent {
		said := name + " admits a recorded request"
		if i > 0 {
			said += fmt.Sprintf(" (%d)", i+1)
		}
		if admitted := played(trial, sent[i].testcase(said)); admitted != nil && admitted.Expect.Decision != "Denied" {
			found = append(found, admitted)
		}
	}
	requests := sent
	if d.recorded == nil {
		requests = d.requests(o)
	}
	for _, right := range requests {
		admitted := played(trial, right.testcase(name+" admits what the document describes"))
		if admitted == nil || admitted.Expect.Decision == "Denied" {
			continue
		}
		for i, wrong := range d.spoil(o, &right) {
			if i == maxSpoiled {
				break
			}
			refused := played(trial, wrong.testcase(name+" "+wrong.what))
			if refused == nil || refused.Expect.Decision != "Denied" || refused.Expect.Code != 422 &&
				refused.Expect.Code != 401 {
				continue
			}
			if d.recorded == nil {
				found = append(found, admitted)
			}
			return append(found, refused)
		}
	}
	return found
}

// played returns a case with its expected result; nil if no test could expect the answer.
func played(trial *policytest.Trial, c *testcase.Case) *testcase.Case {
	if c == nil {
		return nil
	}
	answer, err := trial.Play(c)
	if err != nil && c.Existing != nil { // no object has the path
		c.Existing = nil
		answer, err = trial.Play(c)
	}
	if err != nil || answer.Decision == "" {
		return nil
	}
	c.Expect = *answer
	return c
}

// testOf returns the file of a test.
func testOf(base string, files []string, cases []*testcase.Case, isRecorded bool) []byte {
	var b bytes.Buffer
	paths := make([]string, len(files))
	for i, name := range files {
		paths[i] = quoted(filepath.ToSlash(name))
	}
	if isRecorded {
		b.WriteString("# Requests as they were recorded, and for each operation one that is refused.\n")
	} else {
		b.WriteString("# A request of each operation that is admitted, and one that is refused.\n")
	}
	fmt.Fprintf(&b, "apiVersion: admission-gateway.io/v1alpha1\nkind: PolicyTest\nmetadata: {name: %s}\nspec:\n  policies: [%s]\n  dialect: Plain\n  cases:\n",
		quoted(label(base)), strings.Join(paths, ", "))
	for _, c := range cases {
		writeCase(&b, c)
	}
	return b.Bytes()
}

func writeCase(b *bytes.Buffer, c *testcase.Case) {
	fmt.Fprintf(b, "  - name: %s\n", quoted(c.Name))
	if c.Existing != nil {
		fmt.Fprintf(b, "    existing: %s\n", c.Existing)
	}
	fmt.Fprintf(b, "    request:\n      method: %s\n      path: %s\n", c.Request.Method, quoted(c.Request.Path))
	if media := c.Request.ContentType; media != "" && media != "application/json" {
		fmt.Fprintf(b, "      contentType: %s\n", quoted(media))
	}
	if len(c.Request.Headers) > 0 {
		fmt.Fprintf(b, "      headers: %s\n", inJSON(c.Request.Headers))
	}
	if c.Request.Body != nil {
		fmt.Fprintf(b, "      body: %s\n", c.Request.Body)
	}
	if c.Expect.Decision != "Denied" {
		fmt.Fprintf(b, "    expect: {decision: %s}\n", c.Expect.Decision)
		return
	}
	var causes []string
	for _, cause := range c.Expect.Causes {
		if cause.Field != "" {
			causes = append(causes, "{field: "+quoted(cause.Field)+"}")
		}
	}
	if len(causes) == 0 || len(causes) != len(c.Expect.Causes) || len(causes) > 8 {
		fmt.Fprintf(b, "    expect: {decision: Denied, code: %d}\n", c.Expect.Code)
		return
	}
	fmt.Fprintf(b, "    expect: {decision: Denied, code: %d, causes: [%s]}\n", c.Expect.Code,
		strings.Join(causes, ", "))
}

// quoted returns a text as YAML has it, in quotes only if it needs them.
func quoted(s string) string {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_./", r) {
			return inJSON(s)
		}
	}
	switch strings.ToLower(s) {
	case "", "true", "false", "null", "yes", "no", "on", "off", "y", "n", "-", ".", "~":
		return inJSON(s)
	}
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, ".") {
		return inJSON(s)
	}
	return s
}

// inJSON returns a value as JSON, which is YAML too.
func inJSON(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // texts and maps of texts always can be
	return strings.TrimSpace(b.String())
}

// label returns a name as objects of Kubernetes have them.
func label(s string) string {
	made := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
	if made = strings.Trim(made, "-"); len(made) > 40 {
		made = strings.Trim(made[:40], "-")
	}
	if made == "" {
		return "api"
	}
	return made
}
