package rego

import (
	"strings"
	"testing"
)

// TestReadsCarried: which modules read fields of the object that a server carries over from the stored object.
func TestReadsCarried(t *testing.T) {
	for body, want := range map[string]bool{
		`input.review.object.spec.size > 1`:                            false,
		`input.review.object.metadata.labels.a == "b"`:                 false,
		`some k; input.review.object.metadata.labels[k] == "b"`:        false,
		`input.review.oldObject.metadata.generation == 1`:              false,
		`input.review.operation == "UPDATE"`:                           false,
		`input.parameters.status`:                                      false,
		`input.review.object.metadata.generation == 1`:                 true,
		`input.review.object.metadata["uid"] == "a"`:                   true,
		`some k; input.review.object.metadata[k] == "b"`:               true,
		`input.review.object.status.ready`:                             true,
		`input.review.object == input.review.oldObject`:                true,
		`o := input.review.object; o.metadata.labels.a`:                true,
		`object.get(input.review, ["object", "metadata", "uid"], "")`:  true,
		`input.request.object.metadata.deletionTimestamp`:              true,
		`input.parsed_body.a`:                                          true,
		`walk(input, [["review", "object", "metadata", "uid"], "a"])`:  true,
		`not input.review.object.metadata.deletionGracePeriodSeconds`:  true,
		`f(input.review); f(x) := x.object.metadata.creationTimestamp`: true,
	} {
		text := "package a\n\ndeny contains \"x\" if {\n\t" + body + "\n}\n"
		if rule, function, found := strings.Cut(body, "; f(x)"); found {
			text = "package a\n\nf(x)" + function + "\n\ndeny contains \"x\" if {\n\t" + rule + "\n}\n"
		}
		p, err := Compile(Options{}, Module{Source: []byte(text)})
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if p.ReadsCarried() != want {
			t.Errorf("%s: got %v", body, p.ReadsCarried())
		}
	}
}
