package admin

import (
	"strconv"
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
}

// Exception says about which requests policies are not asked.
type Exception struct {
	Name string `json:"name"`
	// Policies are the policies by their kinds and names.
	Policies []string `json:"policies"`
	Reason   string   `json:"reason"`
	// ExpireTime is when the exception ends; none if it does not. IsExpired says that it did.
	ExpireTime *time.Time `json:"expireTime,omitempty"`
	IsExpired  bool       `json:"isExpired"`
	// Used counts how often a policy was not asked since the policies came into force.
	Used int64 `json:"used"`
}

// Sentence says what a policy would have done.
func (r *Rollout) Sentence() string {
	return "would have refused or changed " + thousands(r.Would) + " of " + thousands(r.Tried) + " requests since " + r.Since.UTC().Format(time.RFC3339)
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
