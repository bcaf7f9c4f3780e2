package audit

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

// remembered writes events one after another with a memo. Each has to be as without one.
func remembered(t *testing.T, r *rand.Rand) {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(most int, from ...string) (list []string) {
		for range r.IntN(most) {
			list = append(list, pick(from...))
		}
		return list
	}
	var m memo
	at := time.Unix(r.Int64N(1<<33), 0)
	for range 30 {
		e := fullEvent()
		e.Info = &resource.Info{
			Verb: resource.VerbCreate, IsResource: r.IntN(8) > 0, Group: pick("", "apps", "a\"b"), Version: pick("v1", "v2"), Resource: pick("pods", "jobs"),
			Namespace: pick("", "team-a", "team-b"), Name: pick("", "a"), Subresource: pick("", "status"),
		}
		if r.IntN(4) == 0 {
			e.Info.Verb = resource.VerbUpdate
		}
		e.User = &identity.User{Name: pick("", "a", "ab"), UID: pick("", "b", "1"), Groups: some(12, "a", "b", "ab", "<")}
		if r.IntN(6) == 0 {
			e.User.Extra = map[string][]string{"a": {"b"}}
		}
		e.Sources, e.Agent = some(3, "a", "b", "10.0.0.1"), pick("", "a", "b", "curl\n", strings.Repeat("x", maxPart))
		e.Object.Namespace, e.Configuration, e.Policies = pick("", "team-a"), pick("", "0a", "0b"), pick("", "0a", "0c")
		switch r.IntN(6) {
		case 0:
			at = at.Add(time.Duration(r.Int64N(int64(time.Hour))))
		case 1:
			at = at.AddDate(9000, 0, 0) // which has more than four digits
		case 2:
			at = time.Unix(r.Int64N(1<<33), 0)
		}
		e.Received, e.At = at, at.Add(time.Duration(r.Int64N(int64(2*time.Second))))
		for range 1 + r.IntN(2) {
			if got, want := string(e.append(nil, &m)), string(e.Append(nil)); got != want {
				t.Fatalf("after others\n%salone\n%s", got, want)
			}
		}
	}
}

// TestMemo: what is kept of one event changes no later one.
func TestMemo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		remembered(t, r)
	}
}

// FuzzMemo does the same.
func FuzzMemo(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, one, other uint64) { remembered(t, rand.New(rand.NewPCG(one, other))) })
}

// TestMemoAllocatesNothing: not even for events of users in turn.
func TestMemoAllocatesNothing(t *testing.T) {
	var m memo
	a, b := fullEvent(), fullEvent()
	a.User, b.User = &identity.User{Name: "a", Groups: []string{"c"}}, &identity.User{Name: "b"}
	a.Agent, b.Agent = "curl", "kubectl"
	line := b.append(a.append(nil, &m), &m)
	if n := testing.AllocsPerRun(100, func() { line = b.append(a.append(line[:0], &m), &m) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
