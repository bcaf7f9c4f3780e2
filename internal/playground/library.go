package playground

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/policies/library"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// An Example is a policy file of the library, with a request of its tests that it refuses.
type Example struct {
	// Name is the path of the file in the library, without its ending.
	Name string `json:"name"`
	// About is the comment at the beginning of the file.
	About    string `json:"about"`
	Question Input  `json:"question"`
}

// demos are requests for the policies of the demo, which have no tests beside them.
var demos = []Example{
	{Name: "demo/queues", Question: Input{
		Path: "/apis/messaging.example.com/v1/namespaces/team-a/queues", Method: "POST",
		Body: `{"metadata":{"name":"payments"},"spec":{"owner":"billing","delivery":"Ordered","partitions":100}}`,
	}},
	{Name: "demo/orders", Question: Input{
		Path: "/v2/orders", Method: "POST",
		Body: `{"id":"o1","customer":"team-a","lines":[{"sku":"tea","unitPriceCents":450}],"status":{"phase":"Delivered"}}`,
	}},
}

// Examples returns the examples of the library: those of the demo first, then the others by their names.
func Examples() ([]Example, error) {
	all := make([]Example, 0, 64)
	for _, one := range demos {
		data, err := fs.ReadFile(library.All(), one.Name+".yaml")
		if err != nil {
			return nil, err
		}
		one.Question.Policies, one.About = string(data), comment(data)
		one.Question.Body = indented([]byte(one.Question.Body))
		all = append(all, one)
	}
	err := fs.WalkDir(library.All(), ".", func(name string, _ fs.DirEntry, err error) error {
		name, isTest := strings.CutSuffix(name, "_test.yaml")
		if err != nil || !isTest {
			return err
		}
		one, err := exampleOf(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
		return nil
	})
	return all, err
}

// exampleOf makes an example of a file with tests.
func exampleOf(name string) (Example, error) {
	one := Example{Name: name}
	policies, err := fs.ReadFile(library.All(), name+".yaml")
	if err != nil {
		return one, err
	}
	text, err := fs.ReadFile(library.All(), name+"_test.yaml")
	if err != nil {
		return one, err
	}
	var tests testcase.Test
	if err := yaml.Unmarshal(text, &tests); err != nil {
		return one, err
	}
	if len(tests.Spec.Cases) == 0 {
		return one, fmt.Errorf("the test has no cases")
	}
	c := &tests.Spec.Cases[0]
	for i := range tests.Spec.Cases {
		if d := tests.Spec.Cases[i].Expect.Decision; d == "Denied" || d == "Warned" {
			c = &tests.Spec.Cases[i]
			break
		}
	}
	one.About, one.Question = comment(policies), questionOf(c, tests.Spec.Dialect)
	for _, o := range append(tests.Spec.Objects, c.Params...) {
		policies = append(append(policies, "---\n"...), indented(o)+"\n"...)
	}
	one.Question.Policies = string(policies)
	return one, nil
}

// questionOf returns the question that a case asks, without the policies.
func questionOf(c *testcase.Case, dialect string) Input {
	q := Input{Dialect: dialect, Body: indented(c.Object), Old: indented(c.Existing)}
	if r := c.Request; r != nil {
		q.Method, q.Path, q.ContentType = r.Method, r.Path, r.ContentType
		if r.Body != nil {
			q.Body = indented(r.Body)
		}
	}
	if c.User != nil {
		q.User, q.Groups = c.User.Name, c.User.Groups
	}
	return q
}

// indented writes JSON for people.
func indented(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// comment returns the comment that a file begins with.
func comment(data []byte) string {
	var words []string
	for line := range strings.Lines(string(data)) {
		text, isComment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !isComment {
			break
		}
		words = append(words, strings.TrimSpace(text))
	}
	return strings.Join(words, " ")
}
