package shared

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
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
	{"array filled", "*2000000000\r\n" + strings.Repeat(":1\r\n", 10_000), true,
		"an answer of Redis has more than 65536 values"},
	{"map", "%900000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"set", "~1800000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"push", ">1800000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"attribute", "|900000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"attributes", strings.Repeat("|0\r\n", 1000), true, "an answer of Redis has more than 65536 values"},
	{"many lists", "*60000\r\n" + strings.Repeat("*60000\r\n", 1000), false,
		"an answer of Redis has more than 65536 values"},
	{"status", "+aaa" + strings.Repeat("a", 32<<10), true, "an answer of Redis has more than 4194304 bytes"},
	{"error", "-" + strings.Repeat("a", 32<<10), true, "an answer of Redis has more than 4194304 bytes"},
	{"big number", "(1" + strings.Repeat("0", 32<<10), true, "an answer of Redis has more than 4194304 bytes"},
	{"double", ",1" + strings.Repeat("0", 32<<10), true, "an answer of Redis has more than 4194304 bytes"},
	{"string", "$2000000000\r\n", false, "an answer of Redis has more than 4194304 bytes"},
	{"error of announced length", "!2000000000\r\n", false, "an answer of Redis has more than 4194304 bytes"},
	{"verbatim string", "=2000000000\r\ntxt:", false, "an answer of Redis has more than 4194304 bytes"},
	{"nesting", strings.Repeat("*1\r\n", 1_000_000), false, "redis: can't parse "},
	{"nested maps", strings.Repeat("%1\r\n+a\r\n", 1_000_000), false, "redis: can't parse "},
	{"pushes", strings.Repeat(">1\r\n+a\r\n", 10_000), true, "an answer of Redis has more than "},
	{"length without end", "*" + strings.Repeat("0", 4096), true, "an answer of Redis has more than 4194304 bytes"},
	{"a string that ends in a list", "$1\r\na--*2000000000\r\n", false,
		"an answer of Redis has more than 65536 values"},
	{"signed length", "*+2000000000\r\n", false, "an answer of Redis has more than 65536 values"},
	{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", false, "what Redis answers is not its protocol"},
}

// TestHostileReplies: whatever a server answers, the connection is cut by a stated bound, the decision fails as if
// Redis did, and little memory is taken.
func TestHostileReplies(t *testing.T) {
	for _, bomb := range bombs {
		t.Run(bomb.name, func(t *testing.T) {
			address, cut := hostile(t, bomb.endless, bomb.reply)
			// so that no other bound cuts the connection
			s, r := open(t, address, func(o *Options) { o.stall = patient })
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

// TestNestedReply: a reply of nested lists is cut, if the question allows for any answer, before go-redis calls itself
// too often.
func TestNestedReply(t *testing.T) {
	address, _ := hostile(t, false, strings.Repeat("*1\r\n", 1_000_000))
	s, _ := open(t, address, nil)
	_, err := s.single.client.Do(t.Context(), "x").Slice()
	if want := "an answer of Redis has more than 65536 values"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// TestRepliesWithinTheBudget: an answer within its bounds takes memory of the common budget, and is cut if there is
// none; all is given back.
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

// announcedByLines reads whole lines, as go-redis does, and returns what they announce.
func announcedByLines(text []byte) (size, values int, err error) {
	r := bufio.NewReader(bytes.NewReader(text))
	for {
		line, end := r.ReadString('\n')
		size += len(line)
		if line != "" && !strings.Contains(replyKinds, line[:1]) {
			return size, values, errNotRESP
		}
		if end != nil {
			return size, values, nil
		}
		if !strings.Contains(longKinds, line[:1]) {
			continue
		}
		length := strings.TrimSuffix(line[1:], "\n")
		n, err := strconv.Atoi(strings.TrimSuffix(length, "\r"))
		switch {
		case err != nil || len(length) >= maxLength:
			return size, values, errNotRESP
		case n < 0:
		case strings.Contains("$!=", line[:1]):
			size += n
			if _, err := r.Discard(n + 2); err != nil {
				return size, values, nil
			}
		default:
			values += map[byte]int{'*': n + 1, '~': n + 1, '>': n + 1, '%': 2*n + 2, '|': 2*n + 2}[line[0]]
		}
		if line[0] == '|' {
			values += asideValues
		}
	}
}

// FuzzAnnounced: replies announce the same however their bytes arrive, and as a client reads them by lines.
func FuzzAnnounced(f *testing.F) {
	for _, bomb := range bombs {
		f.Add([]byte(bomb.reply[:min(len(bomb.reply), 200)]), uint8(3))
	}
	for _, s := range []string{
		"+OK\r\n:1\r\n$3\r\nabc\r\n*2\r\n:1\r\n$-1\r\n*-1\r\n",
		"%1\r\n+a\r\n*0\r\n~1\r\n_\r\n|1\r\n+ttl\r\n:3\r\n#t\r\n>2\r\n+m\r\n,1.5\r\n",
		"*2\r\n|0\r\n:1\r\n:2\r\n", "$3\r\nabc\rx", "$1\r\n\n\r\n", "*1\n", "*+1\r\n", "*-0\r\n",
		"=7\r\ntxt:abc\r\n(123\r\n!3\r\nERR\r\n", "%-1\r\n", "+a\nb\r\n",
	} {
		f.Add([]byte(s), uint8(1))
	}
	most := &replyBounds{bytes: 1 << 60, values: 1 << 60}
	f.Fuzz(func(t *testing.T, text []byte, chunk uint8) {
		size, values, want := announcedByLines(text)
		var whole, parts announced
		if err := whole.read(text, most); err != want || err == nil && (whole.bytes != size || whole.values != values) {
			t.Fatalf("%q announces %d bytes and %d values, %v; want %d and %d, %v", text, whole.bytes, whole.values,
				err, size, values, want)
		}
		var err error
		for part := range slices.Chunk(text, int(chunk)+1) {
			if err = parts.read(part, most); err != nil {
				break
			}
		}
		if err != want || err == nil && (parts.bytes != size || parts.values != values) {
			t.Fatalf("%q in parts announces %d bytes and %d values, %v; want %d and %d, %v", text, parts.bytes,
				parts.values, err, size, values, want)
		}
	})
}
