package proxy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/testutil/story"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestTriedCounts: what a description that is only tried would have refused is counted by operation and reason, without a value
// of the client's, and clients do not learn of it if it only observes. The share for which it is enforced is refused.
func TestTriedCounts(t *testing.T) {
	const file = "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: tasks}\nspec:\n  version: v1\n  names: {plural: tasks, kind: Task}\n" +
		"  paths: {collection: /v1/tasks, item: '/v1/tasks/{name}'}\n  rollout: {%s}\n" +
		"  schema: {openAPIV3Schema: {type: object, required: [size], properties: {size: {type: integer, maximum: 9}, card: {type: string, maxLength: 4}}}}\n"
	const secret = "4111111111111111"
	for _, c := range []struct {
		rollout          string
		enforced, warned bool
	}{
		{"mode: Observe", false, false}, {"mode: Warn", false, true}, {"percent: 0", false, true}, {"percent: 100", true, false}, {"mode: Observe, percent: 100", true, false},
		{"warnUntil: '2999-01-01T00:00:00Z'", false, true}, {"mode: Observe, warnUntil: '1999-01-01T00:00:00Z'", true, false},
	} {
		t.Run(c.rollout, func(t *testing.T) {
			dir := policiestest.Write(t, fmt.Sprintf(file, c.rollout))
			answer := "HTTP/1.1 201 Created\nContent-Type: application/json\nContent-Length: 2\n\n{}\n"
			backend := story.NewBackend(t, listenBackend(t), [][]byte{[]byte(answer), []byte(answer), []byte(answer), []byte(answer)})
			g := gatewayFor(t, dir, backend.Address, nil)
			address := startGateway(t, g)
			for i, body := range []string{`{"size":3}`, `{"card":"` + secret + `"}`, `{"card":"` + secret + `"}`, `{"size":30}`} {
				raw := string(exchangeRaw(t, address, fmt.Appendf(nil, "POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)))
				if isRefused := strings.HasPrefix(raw, "HTTP/1.1 422 "); isRefused != (c.enforced && i > 0) || !isRefused && !strings.HasPrefix(raw, "HTTP/1.1 201 ") {
					t.Errorf("%s is answered with\n%s", body, raw)
				}
				if isWarned := strings.Contains(raw, "\nWarning: "); isWarned != (c.warned && i > 0) {
					t.Errorf("%s is answered with\n%s", body, raw)
				}
			}
			count := g.policies().Terms().Rollouts[0].Count()
			got, numbers := count.Operations(), count.Numbers()
			if c.enforced {
				if got != nil || numbers.Tried != 0 {
					t.Errorf("%+v of %+v was tried", got, numbers)
				}
				return
			}
			for i := range got {
				for j := range got[i].Examples {
					got[i].Examples[j].Last = time.Time{}
				}
			}
			want := []rollout.OperationNumbers{{Method: "POST", Path: "/v1/tasks", Would: 3, Tried: 4, Examples: []rollout.Example{
				{Code: 422, Reason: "Invalid", Fields: []string{"size", "card"}, Count: 2}, {Code: 422, Reason: "Invalid", Fields: []string{"size"}, Count: 1},
			}}}
			if !reflect.DeepEqual(got, want) || numbers.Would != 3 || numbers.Tried != 4 {
				t.Errorf("got %+v, %+v\nwant %+v", got, numbers, want)
			}
		})
	}
}

// TestTriedUnjudged: a body that would have to be read to its end before anything is sent passes, and is not judged; one that is
// too long passes, and would be refused.
func TestTriedUnjudged(t *testing.T) {
	dir := policiestest.Write(t, "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: tasks}\nspec:\n  version: v1\n  names: {plural: tasks, kind: Task}\n"+
		"  paths: {collection: /v1/tasks}\n  rollout: {mode: Observe}\n  schema: {openAPIV3Schema: {type: object}}\n")
	answer := []byte("HTTP/1.1 201 Created\nContent-Type: application/json\nContent-Length: 2\n\n{}\n")
	backend := story.NewBackend(t, listenBackend(t), [][]byte{answer, answer})
	g := gatewayFor(t, dir, backend.Address, nil)
	address := startGateway(t, g)
	long := strings.Repeat("a", 4<<20)
	for _, request := range []string{
		"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		fmt.Sprintf("POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(long), long),
	} {
		if raw := string(exchangeRaw(t, address, []byte(request))); !strings.HasPrefix(raw, "HTTP/1.1 201 ") {
			t.Errorf("the answer is\n%s", raw)
		}
	}
	got := g.policies().Terms().Rollouts[0].Count().Operations()
	if len(got) != 1 || got[0].Tried != 2 || got[0].Would != 1 || got[0].Unjudged != 1 || got[0].Examples[0].Code != 413 {
		t.Errorf("got %+v", got)
	}
}
