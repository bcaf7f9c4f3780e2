package kubernetes

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// What is remembered, and for how long.
func TestProofsRemembered(t *testing.T) {
	var p Proofs
	now, lack := time.Now(), errors.New("no")
	recall := func(host string, after time.Duration) string {
		got, found := p.recall(host, now.Add(after))
		return fmt.Sprint(got, found)
	}
	if got := recall("a", 0); got != "<nil> false" {
		t.Errorf("before all: %s", got)
	}
	p.remember("a", nil, now)
	p.remember("b", lack, now)
	for _, c := range []struct {
		host  string
		after time.Duration
		want  string
	}{
		{"a", 0, "<nil> true"}, {"a", provedFor - 1, "<nil> true"}, {"a", provedFor, "<nil> false"},
		{"b", refutedFor - 1, "no true"}, {"b", refutedFor, "no false"}, {"c", 0, "<nil> false"},
	} {
		if got := recall(c.host, c.after); got != c.want {
			t.Errorf("%s after %v: %s, want %s", c.host, c.after, got, c.want)
		}
	}
	for i := range 2 * maxProofs {
		p.remember(fmt.Sprint("host", i), nil, now)
	}
	if n := p.hosts.Len(); n != maxProofs {
		t.Errorf("%d hosts are remembered", n)
	}
}
