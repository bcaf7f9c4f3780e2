package shared

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/admission-gateway/gateway/internal/memory"
)

// hostile is a server that answers each question with the same, again and again if it is endless. Connections are
// greeted as an old Redis greets them.
func hostile(t *testing.T, endless bool, reply string) (address string, cut <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ended := make(chan struct{}, 1024)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() {
					_ = c.Close()
					select {
					case ended <- struct{}{}:
					default:
					}
				}()
				from := make([]byte, 64<<10)
				for {
					n, err := c.Read(from)
					if err != nil {
						return
					}
					if bytes.Contains(bytes.ToLower(from[:n]), []byte("hello")) {
						if _, err := c.Write([]byte("-ERR unknown command 'hello'\r\n")); err != nil {
							return
						}
						continue
					}
					for more := true; more; more = endless {
						if _, err := io.WriteString(c, reply); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return l.Addr().String(), ended
}

// bombs are answers that go-redis makes room for as they announce, or without end.
var bombs = []struct {
	name, reply string
	endless     bool
	want        string
}{
	{"array", "*2000000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"array filled", "*2000000000\r\n" + strings.Repeat(":1\r\n", 10_000), true, "an answer of Redis has more than 65536 values"},
	{"map", "%900000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"set", "~1800000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"push", ">1800000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"attribute", "|900000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"attributes", strings.Repeat("|0\r\n", 1000), true, "an answer of Redis has more than 65536 values"},
	{"many lists", "*60000\r\n" + strings.Repeat("*60000\r\n", 1000), false, "an answer of Redis has more than 65536 values"},
	{"status", "+aaa" + strings.Repeat("a", 32<<10), true, "an answer of Redis has a line of more than 65536 bytes"},
	{"error", "-" + strings.Repeat("a", 32<<10), true, "an answer of Redis has a line of more than 65536 bytes"},
	{"big number", "(1" + strings.Repeat("0", 32<<10), true, "an answer of Redis has a line of more than 65536 bytes"},
	{"double", ",1" + strings.Repeat("0", 32<<10), true, "an answer of Redis has a line of more than 65536 bytes"},
	{"string", "$2000000000\r\n", false, "an answer of Redis has more than 4194304 bytes"},
	{"error of announced length", "!2000000000\r\n", false, "an answer of Redis has more than 4194304 bytes"},
	{"verbatim string", "=2000000000\r\ntxt:", false, "an answer of Redis has more than 4194304 bytes"},
	{"nesting", strings.Repeat("*1\r\n", 1_000_000), false, "an answer of Redis has lists that are nested more than 32 levels deep"},
	{"nested maps", strings.Repeat("%1\r\n+a\r\n", 1_000_000), false, "an answer of Redis has lists that are nested more than 32 levels deep"},
	{"pushes", strings.Repeat(">1\r\n+a\r\n", 10_000), true, "an answer of Redis has more than "},
	{"length without end", "*" + strings.Repeat("0", 4096), true, "what Redis answers is not its protocol"},
	{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", false, "what Redis answers is not its protocol"},
}

// TestHostileReplies: whatever a server answers, the connection is cut by a stated bound, the decision fails as if Redis
// did, and little memory is taken.
func TestHostileReplies(t *testing.T) {
	for _, bomb := range bombs {
		t.Run(bomb.name, func(t *testing.T) {
			address, cut := hostile(t, bomb.endless, bomb.reply)
			s, r := open(t, address, func(o *Options) { o.stall = patient }) // so that no other bound cuts the connection
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Take([]Demand{demand("alice", perHour(1))})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), bomb.want) {
				t.Errorf("the error is %v, want %s", err, bomb.want)
			}
			if got := fmt.Sprint(r.drain()); got != "[Error]" {
				t.Errorf("counted as %s", got)
			}
			<-cut
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 40<<20 {
				t.Errorf("it took %d bytes", taken)
			}
		})
	}
}

// TestRepliesWithinTheBudget: an answer within its bounds takes memory of the common budget, and is cut if there is none;
// all is given back.
func TestRepliesWithinTheBudget(t *testing.T) {
	reply := "*60000\r\n" + strings.Repeat(":1\r\n", 60_000)
	for _, test := range []struct {
		name  string
		bytes int64
		want  string
	}{
		{"enough", 64 << 20, "the reply"},
		{"none", 1 << 20, errReplyNoMemory.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			address, _ := hostile(t, false, reply)
			budget := memory.NewBudget(test.bytes, 1)
			s, _ := open(t, address, func(o *Options) { o.Memory = budget })
			reply, err := s.single.client.Do(t.Context(), "x").Slice()
			if test.want == "the reply" {
				if err != nil || len(reply) != 60_000 || budget.Peak() < 60_000*replyValueBytes {
					t.Errorf("read %d values, %v; %d bytes were taken", len(reply), err, budget.Peak())
				}
			} else if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("read %d values, %v", len(reply), err)
			}
			if err := s.single.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
				t.Fatal(err)
			}
			if budget.InUse() != 0 {
				t.Errorf("%d bytes are not given back", budget.InUse())
			}
			s.single.client = redis.NewClient(&redis.Options{Addr: address}) // for Close
		})
	}
}

// slowFrames reads replies by recursion over a bufio.Reader, as clients do, and returns the sum of all that is announced.
// It ends at the end of the text, which may be anywhere.
func slowFrames(text []byte) (values int, err error) {
	r := bufio.NewReader(bytes.NewReader(text))
	var read func(depth int) error
	line := func() (string, error) {
		s, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if !strings.HasSuffix(s, "\r\n") {
			return "", errNotRESP
		}
		return strings.TrimSuffix(s, "\r\n"), nil
	}
	read = func(depth int) error {
		kind, err := r.ReadByte()
		if err != nil {
			return err
		}
		if !strings.ContainsRune("+-:_,#($!=*~>%|", rune(kind)) {
			return errNotRESP
		}
		s, err := line()
		if err != nil {
			return err
		}
		if strings.ContainsRune("+-:_,#(", rune(kind)) {
			return nil
		}
		if s == "-1" && (kind == '$' || kind == '*') {
			return nil
		}
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil || strings.HasPrefix(s, "+") || len(s) > maxDigits {
			return errNotRESP
		}
		switch kind {
		case '$', '!', '=':
			if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
				return err
			}
			end := make([]byte, 2)
			if got, err := io.ReadFull(r, end); err != nil {
				if got == 1 && end[0] != '\r' {
					return errNotRESP
				}
				return err
			}
			if string(end) != "\r\n" {
				return errNotRESP
			}
			return nil
		case '%', '|':
			n *= 2
		}
		values += int(n)
		if n > 0 && depth == maxReplyDepth {
			return errReplyNested
		}
		for range n {
			if err := read(depth + 1); err != nil {
				return err
			}
		}
		if kind == '|' {
			values += asideValues
			return read(depth)
		}
		return nil
	}
	for {
		if err := read(0); err != nil {
			return values, err
		}
	}
}

// FuzzFrames: the frames are read alike however they arrive, and as a client reads them by recursion.
func FuzzFrames(f *testing.F) {
	for _, bomb := range bombs {
		f.Add([]byte(bomb.reply[:min(len(bomb.reply), 200)]), uint8(3))
	}
	for _, s := range []string{
		"+OK\r\n:1\r\n$3\r\nabc\r\n*2\r\n:1\r\n$-1\r\n*-1\r\n", "%1\r\n+a\r\n*0\r\n~1\r\n_\r\n|1\r\n+ttl\r\n:3\r\n#t\r\n>2\r\n+m\r\n,1.5\r\n",
		"*2\r\n|0\r\n:1\r\n:2\r\n", "$3\r\nabc\rx", "$1\r\n\n\r\n", "*1\n", "*+1\r\n", "*-0\r\n", "=7\r\ntxt:abc\r\n(123\r\n!3\r\nERR\r\n", "%-1\r\n", "+a\nb\r\n",
	} {
		f.Add([]byte(s), uint8(1))
	}
	most := &replyBounds{bytes: 1 << 40, values: 1 << 40}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		if len(text) > 4096 {
			return
		}
		var whole, parts frames
		err := whole.read(text, most)
		var inParts error
		for rest := text; len(rest) > 0 && inParts == nil; {
			n := min(len(rest), int(size)+1)
			inParts = parts.read(rest[:n], most)
			rest = rest[n:]
		}
		if fmt.Sprint(inParts) != fmt.Sprint(err) || err == nil && (whole.bytes != parts.bytes || whole.values != parts.values) {
			t.Fatalf("%q: whole %v, in parts %v", text, err, inParts)
		}
		_, slow := slowFrames(text)
		isRefused := errors.Is(slow, errNotRESP) || errors.Is(slow, errReplyNested)
		// What is refused within a head or a line that has not ended yet the slow one has not seen.
		if err == nil && isRefused {
			t.Fatalf("%q: %v, the slow one says %v", text, err, slow)
		}
		if err != nil && !isRefused {
			if ended := bytes.LastIndexByte(text, '\n'); ended >= 0 {
				text = text[:ended+1]
			} else {
				text = nil
			}
			var again frames
			if err := again.read(text, most); err != nil && !strings.Contains(err.Error(), "bytes") && !strings.Contains(err.Error(), "values") {
				t.Fatalf("%q: %v, the slow one says %v", text, err, slow)
			}
		}
	})
}
