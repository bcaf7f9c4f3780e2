package lint

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/policies/finding"
)

// An Exception lets findings pass, for a reason.
type Exception struct {
	// Rule is the id of a rule, or the part before its slash.
	Rule string `json:"rule"`
	// File is a pattern of file names, Field a pattern of field paths, with * for any letters. Empty matches all.
	File  string `json:"file"`
	Field string `json:"field"`
	// Reason says why the rule does not hold there.
	Reason string `json:"reason"`
}

// ReadExceptions reads a file of exceptions.
func ReadExceptions(name string, data []byte) ([]Exception, error) {
	var file struct {
		Exceptions []Exception `json:"exceptions"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, e := range file.Exceptions {
		if e.Rule == "" || e.Reason == "" {
			return nil, fmt.Errorf("%s: exceptions[%d] must have `rule` and `reason`", name, i)
		}
	}
	return file.Exceptions, nil
}

// Except takes out the findings that exceptions let pass. An exception that lets nothing pass is a finding itself: what
// it was for is mended.
func Except(found []finding.Finding, exceptions []Exception, file string) (left []finding.Finding) {
	used := make([]bool, len(exceptions))
	for _, f := range found {
		isExcepted := false
		for i, e := range exceptions {
			if e.matches(f) {
				used[i], isExcepted = true, true
			}
		}
		if !isExcepted {
			left = append(left, f)
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			left = append(left, finding.Finding{File: file, Field: fmt.Sprintf("exceptions[%d]", i),
				Severity: finding.Warning, Rule: "exception",
				Message: fmt.Sprintf("lets nothing pass: no finding of '%s' is left there", e.Rule)})
		}
	}
	return left
}

func (e *Exception) matches(f finding.Finding) bool {
	family, _, _ := strings.Cut(f.Rule, "/")
	return (e.Rule == f.Rule || e.Rule == family) &&
		(e.File == "" || fits(e.File, f.File) || fits(e.File, path.Base(f.File))) &&
		(e.Field == "" || fits(e.Field, f.Field))
}

// fits reports whether a text fits a pattern, in which * stands for any letters.
func fits(pattern, text string) bool {
	head, rest, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return pattern == text
	}
	after, ok := strings.CutPrefix(text, head)
	if !ok {
		return false
	}
	for i := 0; i <= len(after); i++ {
		if fits(rest, after[i:]) {
			return true
		}
	}
	return false
}
