package explanation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/admission-gateway/gateway/internal/pages"
)

// WriteHTML writes an explanation as a page of its own. It has no scripts, and asks nothing of any server.
func WriteHTML(w io.Writer, s *Explanation) error { return pages.Explanation.Write(w, s) }

// Fragment returns an explanation as the part of a page that has the style of explanations.
func Fragment(s *Explanation) (string, error) {
	var b strings.Builder
	err := pages.Explanation.WritePart(&b, "story", s)
	return b.String(), err
}

// Reason says why the request is refused; empty if it is not.
func (s *Explanation) Reason() string {
	if s.Answer.Decision != Refused {
		return ""
	}
	var said struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(s.Answer.Status, &said) // an answer in another form has no message
	refusal := ""
	for i := range s.Steps {
		refusal = cmp.Or(s.Steps[i].Refusal, refusal)
	}
	return cmp.Or(said.Message, refusal)
}

// A stretch is a step, or the steps in a row that changed nothing, which a page folds under a summary.
type stretch struct {
	Summary string
	Steps   []numberedStep
}

type numberedStep struct {
	Number int
	*Step
}

// Stretches are the steps in their order.
func (s *Explanation) Stretches() (all []stretch) {
	for i := 0; i < len(s.Steps); {
		from := i
		var one stretch
		for ; i < len(s.Steps) && (i == from || s.Steps[from].isQuiet() && s.Steps[i].isQuiet()); i++ {
			one.Steps = append(one.Steps, numberedStep{i + 1, &s.Steps[i]})
		}
		switch {
		case !s.Steps[from].isQuiet():
		case i == from+1:
			one.Summary = fmt.Sprintf("Step %d changed nothing", i)
		default:
			one.Summary = fmt.Sprintf("Steps %d to %d changed nothing", from+1, i)
		}
		all = append(all, one)
	}
	return all
}

// isQuiet reports whether the step changed nothing, and asked no policy.
func (s *Step) isQuiet() bool {
	return len(s.Edits)+len(s.Expressions)+len(s.Policies) == 0 && s.Refusal == ""
}
