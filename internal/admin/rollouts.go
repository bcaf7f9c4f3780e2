package admin

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rollout says how far a policy is in force, and what it would have done otherwise.
type Rollout struct {
	// Policy is the kind and the name of the policy or the binding.
	Policy string `json:"policy"`
	// Enforced says how far: "for 10 %"; it is empty if the policy is enforced everywhere by now.
	Enforced string `json:"enforced,omitempty"`
	// Would counts the requests that the policy would have refused or changed, of Tried ones for which
	// it was not enforced since a time.
	Would int64     `json:"would"`
	Tried int64     `json:"tried"`
	Since time.Time `json:"since"`
	// Operations are the operations of a document, or of an APIResource, that had requests.
	Operations []RolloutOperation `json:"operations,omitempty"`
}

// RolloutOperation says what a description would have done to requests of one operation.
type RolloutOperation struct {
	// Operation is the method and the template of the path.
	Operation string `json:"operation"`
	// Would counts the requests that would have been refused, Unjudged ones that could not be judged, of Tried ones.
	Would    int64 `json:"would"`
	Tried    int64 `json:"tried"`
	Unjudged int64 `json:"unjudged"`
	// Examples are the kinds of refusals, the most frequent first.
	Examples []RolloutExample `json:"examples,omitempty"`
}

// RolloutExample is a kind of refusal. It has no value that a client sent.
type RolloutExample struct {
	Code   int       `json:"code"`
	Reason string    `json:"reason"`
	Fields []string  `json:"fields,omitempty"`
	Count  int64     `json:"count"`
	Last   time.Time `json:"last"`
}

// Share says how many requests of the operation would have been refused.
func (o *RolloutOperation) Share() string {
	text := thousands(o.Would) + " of " + thousands(o.Tried)
	if o.Tried > 0 {
		text += fmt.Sprintf(" (%.1f %%)", 100*float64(o.Would)/float64(o.Tried))
	}
	if o.Unjudged > 0 {
		text += ", " + thousands(o.Unjudged) + " not judged"
	}
	return text
}

// Text says what would have been refused, such as '422 Invalid: lines[0].sku (12)'.
func (e *RolloutExample) Text() string {
	text := strconv.Itoa(e.Code) + " " + e.Reason
	if len(e.Fields) > 0 {
		text += ": " + strings.Join(e.Fields, ", ")
	}
	return text + " (" + thousands(e.Count) + ")"
}

// Texts says what would have been refused, the most frequent first.
func (o *RolloutOperation) Texts() string {
	texts := make([]string, len(o.Examples))
	for i := range o.Examples {
		texts[i] = o.Examples[i].Text()
	}
	return strings.Join(texts, "; ")
}

// Exception says about which requests policies are not asked.
type Exception struct {
	Name string `json:"name"`
	// Policies are the policies by their kinds and names.
	Policies []string `json:"policies"`
	Reason   string   `json:"reason"`
	// Folder is the folder of policy files that it comes from and Owner who mends it, if it has one.
	Folder string `json:"folder,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// ExpireTime is when the exception ends; none if it does not. IsExpired says that it did.
	ExpireTime *time.Time `json:"expireTime,omitempty"`
	IsExpired  bool       `json:"isExpired"`
	// Used counts how often a policy was not asked since the policies came into force.
	Used int64 `json:"used"`
}

// Sentence says what a policy would have done.
func (r *Rollout) Sentence() string {
	return "would have refused or changed " + thousands(r.Would) + " of " + thousands(r.Tried) + " requests since " +
		r.Since.UTC().Format(time.RFC3339)
}

// End says when the exception ends.
func (e *Exception) End() string {
	switch {
	case e.ExpireTime == nil:
		return "never"
	case e.IsExpired:
		return e.ExpireTime.UTC().Format(time.RFC3339) + " (expired)"
	}
	return e.ExpireTime.UTC().Format(time.RFC3339)
}

// thousands writes a number with a comma after each three digits.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
