package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cases"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

// TestExplainAgrees plays recorded cases twice, explained and for real: both have one verdict, word
// for word.
func TestExplainAgrees(t *testing.T) {
	suites := suitesDir(t)
	metrics, err := telemetry.New(telemetry.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"protocol", "gateway-api-examples", "json-patch-tests", "vap-map-lab", "vap-kubescape",
		"cel-spec"} {
		t.Run(set, func(t *testing.T) {
			all, err := cases.Read(filepath.Join(suites, "cases", set+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			groups := map[string][]*cases.Case{}
			for i := range all {
				if all[i].Request.Method == "HEAD" { // whose explanation has no body either
					continue
				}
				key, _ := json.Marshal([]any{all[i].PolicyFiles, all[i].PolicyObjects}) // texts and JSON
				groups[string(key)] = append(groups[string(key)], &all[i])
			}
			verdicts := map[explanation.Decision]int{}
			for _, key := range testutil.Sampled(3, slices.Sorted(maps.Keys(groups))) {
				agree(t, metrics, suites, groups[key], verdicts)
			}
			if t.Log(verdicts); verdicts[explanation.Admitted] == 0 && verdicts[explanation.Refused] == 0 {
				t.Error("nothing was explained")
			}
		})
	}
}

func agree(t *testing.T, metrics *telemetry.Telemetry, suites string, group []*cases.Case,
	verdicts map[explanation.Decision]int) {
	t.Helper()
	from := setting{Dialect: "Plain", Objects: group[0].PolicyObjects}
	for _, file := range group[0].PolicyFiles {
		from.Paths = append(from.Paths, filepath.Join(suites, file))
	}
	set, found := newSets(&policies.Gateway{}).of(&from)
	if set == nil {
		if slices.ContainsFunc(group, func(c *cases.Case) bool { return c.Expect.Code != 0 && c.Expect.Code < 300 }) {
			t.Logf("%s: the policies are refused: %s", group[0].ID, errorsIn(found))
		}
		return
	}
	e, err := newEnvironment(set, &Service{}, &from, metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	player := cases.Player{Address: e.address,
		As: &cases.User{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}},
		Identify: func(u cases.User) []cases.Header {
			all := []cases.Header{{Name: "X-Remote-User", Value: u.Name}}
			for _, g := range append(u.Groups, "system:authenticated") {
				all = append(all, cases.Header{Name: "X-Remote-Group", Value: g})
			}
			return all
		}}
	for _, c := range group {
		asked := *c
		asked.Follow, asked.Request.Headers = nil, map[string]string{"X-Admission-Explain": "1"}
		maps.Copy(asked.Request.Headers, c.Request.Headers)
		e.servers[0].reset()
		explained, err := player.Play(&asked)
		if err != nil {
			t.Fatal(err)
		}
		asked.Request.Headers = c.Request.Headers
		e.servers[0].reset()
		real, err := player.Play(&asked)
		if err != nil {
			t.Fatal(err)
		}
		if problem := compareVerdicts(&explained.Got, &real.Got, verdicts); problem != "" {
			t.Errorf("%s: %s", c.ID, problem)
		}
	}
}

// compareVerdicts says how an explanation differs from what happened.
func compareVerdicts(explained, real *cases.Response, verdicts map[explanation.Decision]int) string {
	var s explanation.Explanation
	if json.Unmarshal(explained.Object, &s) != nil || s.Kind != explanation.Kind {
		// The head, or the path, was refused before anything was known: the explanation is the refusal.
		if explained.Code != real.Code || explained.Message != real.Message {
			return fmt.Sprintf("explained with %d %q, and answered with %d %q", explained.Code, explained.Message,
				real.Code, real.Message)
		}
		return ""
	}
	verdicts[s.Answer.Decision]++
	for _, step := range s.Steps {
		for _, p := range step.Policies {
			for _, x := range p.Expressions {
				if x.IsDoubtful {
					return "the values of parts are not known: " + x.Text
				}
			}
		}
	}
	if s.Answer.Decision != explanation.Refused {
		// The backend may refuse what the gateway sends: what exists already, or does not.
		// which the gateway judges by what the backend answers
		isRead := s.Resource.Verb == "get" || s.Resource.Verb == "list"
		if real.Code < 400 || real.Code == 404 || real.Code == 409 || isRead {
			return ""
		}
		return fmt.Sprintf("explained as %s, and answered with %d %q", s.Answer.Decision, real.Code, real.Message)
	}
	var refusal problem
	if err := json.Unmarshal(s.Answer.Status, &refusal); err != nil {
		return err.Error()
	}
	if s.Answer.Code != real.Code || mask(refusal.Message) != mask(real.Message) ||
		len(refusal.Details.Causes) != len(real.Causes) {
		return fmt.Sprintf("explained as %d %q, and answered with %d %q", s.Answer.Code, refusal.Message, real.Code,
			real.Message)
	}
	return ""
}

// made are the names and uids that the gateway makes anew for each request.
var made = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|-[a-z0-9]{5}\b`)

func mask(message string) string { return made.ReplaceAllString(message, "*") }

// suitesDir returns the folder of the recorded cases; without it the test is skipped.
func suitesDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = filepath.Join("..", "shared", "suites")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "cases")); err != nil {
		t.Skipf("no recorded cases in %s: set SUITES_DIR to the folder that holds them", dir)
	}
	return dir
}

// TestExplanationIsEscaped explains a request whose object, user and policy are markup and commands for terminals.
func TestExplanationIsEscaped(t *testing.T) {
	const evil = `"></pre><script>alert(1)</script><img src=x onerror=alert(1)>\u001b[2J\u202e`
	dir := t.TempDir()
	policy := `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"a"},"spec":{
"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},
"validations":[{"expression":"object.data.a == '<script>alert(2)</script>'","messageExpression":"'<script>' + object.data.a"}]}}
---
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"a"},"spec":{"policyName":"a","validationActions":["Deny"]}}`
	if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	q := &ExplainRequest{Policies: []string{dir}}
	quoted := strings.ReplaceAll(evil, `"`, `\"`)
	q.Case.Object = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"},"data":{"a":"` + quoted + `"}}`)
	s, err := Explain(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if s.Answer.Decision != explanation.Refused || len(s.Steps) == 0 {
		t.Fatalf("the answer is %+v", s.Answer)
	}
	s.Request.User = "<script>alert(3)</script>"
	var page, text bytes.Buffer
	if err := explanation.WriteHTML(&page, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "&lt;script&gt;alert(1)") {
		t.Error("the page does not show the value")
	}
	for _, no := range []string{"<script", "<img", "onerror=alert(1)>"} {
		if strings.Contains(page.String(), no) {
			t.Errorf("the page has %q", no)
		}
	}
	explanation.WriteText(&text, s, true)
	if strings.Contains(text.String(), "\x1b[2J") || strings.Contains(text.String(), "\u202e") {
		t.Error("the text commands the terminal")
	}
}
