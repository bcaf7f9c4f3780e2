package rego

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestTimeOfTests: a test in Rego that takes too long fails, and the ones after it are run. A test has
// the time that an evaluation has for a request.
func TestTimeOfTests(t *testing.T) {
	m := Module{File: "p_test.rego", Tests: true, Source: []byte(`package p

test_a_endless if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j < 0
}

test_b_false if 1 > 2
`)}
	found, err := testWithin(context.Background(), time.Second, Options{}, nil, []Module{m})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprint(r.Name, r.Problems))
	}
	if want := fmt.Sprint([]string{"test_a_endless[the policy took longer than 5s]", "test_b_false[is not true in line 9: 1 > 2]"}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if maxTime != 5*time.Second {
		t.Errorf("a test has %v", maxTime)
	}
}
