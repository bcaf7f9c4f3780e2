package match

// Known says how much of a request is known to a matcher that is asked about it. What is known early must not be
// decided otherwise later: a matcher that knows less leaves more open.
type Known uint8

const (
	// ByURL is what method and target say.
	ByURL Known = iota
	// ByNamespace is that, and the labels of the namespace.
	ByNamespace
	// ByObject is that, the object and the stored one, and in which other versions they are served.
	ByObject
)

// A Verdict is what a clause says.
type Verdict uint8

const (
	No Verdict = iota
	Open
	Yes
)

// VerdictOf is the verdict of a decision.
func VerdictOf(holds bool) Verdict {
	if holds {
		return Yes
	}
	return No
}
