package cel

import (
	"strings"
	"testing"
)

// tally counts the results of a corpus.
type tally struct {
	expressions, native, compared int
	reasons                       map[string]int
}

func (n *tally) planned(p *Program) {
	n.expressions++
	if p.native != nil {
		n.native++
		return
	}
	if n.reasons == nil {
		n.reasons = map[string]int{}
	}
	n.reasons[p.reason]++
}

// report prints the share of native plans, which must not fall.
func (n *tally) report(t *testing.T, least float64) {
	t.Helper()
	share := 100 * float64(n.native) / float64(max(n.expressions, 1))
	t.Logf("%d of %d expressions run natively (%.1f %%); %d values compared", n.native, n.expressions, share,
		n.compared)
	for reason, times := range n.reasons {
		t.Logf("%d times: %s", times, reason)
	}
	if share < least {
		t.Errorf("%.1f %% of the expressions run natively, want at least %v %%", share, least)
	}
}

// same reports whether two evaluations returned the same value, or both an error.
func same(a, b evalResult) bool { return a.value == b.value && (a.err == "") == (b.err == "") }

// uncomparable reports whether Kubernetes answers differently for a reason that has nothing to do
// with how expressions run.
func uncomparable(ours, theirs evalResult) bool {
	return strings.Contains(ours.err, "beyond 64 bits") || // Kubernetes rounds
		// counted by another measure
		strings.Contains(theirs.err, "cost limit") || strings.Contains(theirs.err, "cost budget") ||
		strings.HasPrefix(theirs.err, "internal error") // it panics if an argument is an error or of another type
}

// compare compares an expression's value in three ways; natively has it if there is a native plan.
func (n *tally) compare(t *testing.T, expression string, natively func() (evalResult, bool), lazily,
	kubernetes func() evalResult) {
	t.Helper()
	lazy, theirs := lazily(), kubernetes()
	n.compared++
	for try := 0; try < 100 && !same(lazy, theirs) && !uncomparable(lazy, theirs); try++ {
		theirs = kubernetes() // the order of a map's keys is random
	}
	if !same(lazy, theirs) && !uncomparable(lazy, theirs) {
		t.Errorf("%s\nlazily     %v\nKubernetes %v", expression, lazy, theirs)
	}
	if got, ok := natively(); ok && got != lazy {
		t.Errorf("%s\nnatively %v\nlazily   %v", expression, got, lazy)
	}
}
