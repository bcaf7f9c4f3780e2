package explanation_test

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/explanation"
)

// TestFragment: an explanation begins with the answer and why; steps in a row that changed nothing are folded.
func TestFragment(t *testing.T) {
	s := explanation.Explanation{
		Request: explanation.Request{Method: "POST", Path: "/a"},
		Steps: []explanation.Step{
			{Name: "Limits"}, {Name: "Body"}, {Name: "Defaults", Edits: []explanation.Edit{{Path: "a", New: "1"}}},
			{Name: "Schema"},
			{Name: "Policies", Policies: []explanation.Policy{{Name: "p", Verdict: "Deny"}}, Refusal: "a <b>"},
		},
		Answer: explanation.Response{Decision: explanation.Refused, Code: 422},
	}
	page, err := explanation.Fragment(&s)
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{
		"<strong>Refused</strong> with 422", "<p>a &lt;b&gt;</p>",
		"<details><summary>Steps 1 to 2 changed nothing</summary>", "1. Limits", "2. Body", "</details>",
		"3. Defaults", "<details><summary>Step 4 changed nothing</summary>", "4. Schema", "</details>", "5. Policies",
	} {
		i := strings.Index(page[at+1:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place, in\n%s", want, page)
		}
		at += 1 + i
	}
	s.Answer.Status = []byte(`{"message":"the message"}`)
	for want, decision := range map[string]explanation.Decision{"the message": explanation.Refused,
		"": explanation.Admitted} {
		if s.Answer.Decision = decision; s.Reason() != want {
			t.Errorf("%s because of %q, want %q", decision, s.Reason(), want)
		}
	}
}
