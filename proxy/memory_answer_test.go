package proxy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/memory"
)

// TestNoMemoryForTheAnswerOfAWrite: a write that is done is answered as done, wherever the memory ends in which its
// answer would be completed.
func TestNoMemoryForTheAnswerOfAWrite(t *testing.T) {
	note := strings.Repeat("n", 40_000)
	var more strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&more, `,"k%d":""`, i)
	}
	object := `{"metadata":{"name":"w1","annotations":{"note":"` + note + `"}},"spec":{"size":1}}`
	answered := `{"metadata":{"name":"w1","annotations":{"note":"` + note + `","by":"backend"` + more.String() +
		`}},"spec":{"size":1}}`
	kinds := map[string]int{}
	for _, left := range []int{0, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20} {
		backend := newRecorder(t)
		g := gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"policies=widgets", "memory=8000000"})
		backend.Reply = func(int, string, string) (string, bool) {
			// Many small requests take all that there is but for that.
			for taken := 0; taken < 8_000_000-left; taken += 64 << 10 {
				other := &memory.Reservation{}
				other.Open(g.memory.Budget, nil)
				t.Cleanup(other.Close)
				if !other.Grow(64 << 10) {
					break
				}
			}
			return fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n%s", len(answered), answered), true
		}
		nc, br := dial(t, startGateway(t, g))
		send(t, nc, "POST "+widgetsPath+" HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: "+
			strconv.Itoa(len(object))+"\r\n\r\n"+object)
		got, _ := readAnswer(t, br, false)
		switch text := string(got.Content); {
		case got.StatusCode != 201:
			t.Errorf("with %d bytes left a write that is done is answered %d: %.400s", left, got.StatusCode, text)
		case text == answered:
			kinds["backend's own"]++
		case strings.Contains(text, `"mode":"Open"`) && strings.Contains(text, note) &&
			strings.Contains(text, `"by":"backend"`):
			kinds["completed"]++
		case strings.Contains(text, `"mode":"Open"`) && strings.Contains(text, note):
			kinds["as it was sent"]++
		default:
			t.Errorf("with %d bytes left the answer is %.200s", left, text)
		}
	}
	if kinds["completed"] == 0 || kinds["as it was sent"]+kinds["backend's own"] == 0 {
		t.Errorf("the answers are %v", kinds)
	}
}
