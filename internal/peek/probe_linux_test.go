package peek

import (
	"fmt"
	"net"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestLooks looks at many sockets in each state at once, as a server that serves half-closed connections does, and as
// one that does not.
func TestLooks(t *testing.T) {
	states := []struct {
		name                           string
		then                           func(far *net.TCPConn)
		hasEnded, endsHalf, isReadable bool
	}{
		{name: "silent", then: func(*net.TCPConn) {}},
		{name: "bytes", then: func(far *net.TCPConn) { _, _ = far.Write([]byte("x")) }, isReadable: true},
		{name: "half closed", then: func(far *net.TCPConn) { _ = far.CloseWrite() }, hasEnded: true, isReadable: true},
		{name: "half closed behind bytes", then: func(far *net.TCPConn) {
			_, _ = far.Write([]byte("x"))
			_ = far.CloseWrite()
		}, hasEnded: true, isReadable: true},
		{name: "reset", then: func(far *net.TCPConn) {
			_ = far.SetLinger(0)
			_ = far.Close()
		}, hasEnded: true, endsHalf: true, isReadable: true},
		{name: "reset behind bytes", then: func(far *net.TCPConn) {
			_, _ = far.Write([]byte("x"))
			_ = far.SetLinger(0)
			_ = far.Close()
		}, hasEnded: true, endsHalf: true, isReadable: true},
	}
	for _, servesHalf := range []bool{false, true} {
		var looks []Probe
		for range 3 {
			for _, s := range states {
				_, far, socket := pair(t)
				s.then(far.(*net.TCPConn))
				looks = append(looks, Probe{Socket: socket, ServesHalf: servesHalf, Reads: true})
			}
		}
		found := func() (all string) {
			for i := range looks {
				all += fmt.Sprintln(states[i%len(states)].name, looks[i].HasEnded, looks[i].IsReadable)
			}
			return all
		}
		want := ""
		for i := range looks {
			s := states[i%len(states)]
			want += fmt.Sprintln(s.name, s.hasEnded && (!servesHalf || s.endsHalf), s.isReadable)
		}
		var polls Polls
		testutil.Eventually(t, "the looks to find everything", func() bool {
			polls = ProbeAll(looks, polls)
			return found() == want
		})
		for range 3 {
			if polls = ProbeAll(looks, polls); found() != want {
				t.Fatalf("serves half %v: found\n%swant\n%s", servesHalf, found(), want)
			}
		}
	}
}

// TestLooksAtClosed: a socket that was closed at this end says nothing.
func TestLooksAtClosed(t *testing.T) {
	near, _, socket := pair(t)
	_ = near.Close()
	looks := []Probe{{Socket: socket, Reads: true}}
	if ProbeAll(looks, Polls{}); looks[0].HasEnded || looks[0].IsReadable {
		t.Errorf("found %+v", looks[0])
	}
}
