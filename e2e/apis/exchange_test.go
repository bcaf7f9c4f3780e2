package apis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is the time that one exchange may take.
const patience = 15 * time.Second

// A request is written to the connection as it stands here.
type request struct {
	name   string // of the proof
	method string
	target string
	header []string // lines "Name: value"
	body   string
	bare   bool // without Content-Length
}

// An answer as a client gets it.
type answer struct {
	code   int
	header http.Header
	body   string
}

// send writes the request on a connection of its own and reads the answer.
func (r *request) send(address string) (*answer, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	// a server may answer before it has read all
	go func() { _, _ = io.WriteString(connection, r.head(address)+r.body) }()
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: r.method})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("the body of the answer: %w", err)
	}
	return &answer{response.StatusCode, response.Header, string(body)}, nil
}

func (r *request) head(address string) string {
	lines := []string{r.method + " " + r.target + " HTTP/1.1", "Host: " + address, "Connection: close"}
	if r.body != "" && !r.bare {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(r.body)))
	}
	return strings.Join(append(lines, r.header...), "\r\n") + "\r\n\r\n"
}

func (r *request) mustSend(t testing.TB, address string) *answer {
	t.Helper()
	a, err := r.send(address)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.target, err)
	}
	return a
}

// hopByHop are the headers of one connection (RFC 9110, 7.6.1), and Via, which a proxy may add.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Via"}

// A row is one difference between two answers.
type row struct{ part, direct, through string }

// differences compares answers, with values that always vary made equal by vary.
func differences(direct, through *answer, vary func(string) string) []row {
	var rows []row
	differ := func(part, a, b string) {
		if a != b {
			rows = append(rows, row{part, a, b})
		}
	}
	differ("code", fmt.Sprint(direct.code), fmt.Sprint(through.code))
	var names []string
	for name := range direct.header {
		names = append(names, name)
	}
	for name := range through.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.Contains(hopByHop, name) {
			continue
		}
		a, b := strings.Join(direct.header[name], " | "), strings.Join(through.header[name], " | ")
		if name == "Date" && a != "" && b != "" {
			continue
		}
		if name == "Content-Length" && isOnlyFraming(direct, through, a, b) {
			continue // the bodies are compared
		}
		if name == "Content-Length" && direct.code == 204 && b == "" {
			continue // an answer without content must not have it (RFC 9110, 8.6)
		}
		if name != "Date" {
			a, b = vary(a), vary(b)
		}
		differ(name, orNone(a), orNone(b))
	}
	differ("body", vary(direct.body), vary(through.body))
	return rows
}

// isOnlyFraming reports whether two lengths differ in how the hops delimit the body alone: chunks that have all
// arrived may go on with a length, and a 204 has none (RFC 9110, 8.6).
func isOnlyFraming(direct, through *answer, a, b string) bool {
	if direct.code == http.StatusNoContent {
		return b == ""
	}
	return (a == "" || a == fmt.Sprint(len(direct.body))) && b == fmt.Sprint(len(through.body))
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// table writes rows as a table, with long values shortened in the middle.
func table(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%-20s direct:  %s\n%-20s gateway: %s\n", r.part, short(r.direct), "", short(r.through))
	}
	return b.String()
}

func short(s string) string {
	if s = fmt.Sprintf("%q", s); len(s) > 400 {
		return s[:200] + " … " + s[len(s)-200:]
	}
	return s
}

// varying returns a function that replaces what matches by "~", so that only the rest is compared.
func varying(patterns ...string) func(string) string {
	if len(patterns) == 0 {
		return func(s string) string { return s }
	}
	expression := regexp.MustCompile(strings.Join(patterns, "|"))
	return func(s string) string { return expression.ReplaceAllString(s, "~") }
}

// proveEqual sends the requests in their order to a server, and to another one of the same kind behind the gateway.
// Each pair of answers is a proof.
func proveEqual(t *testing.T, direct, gateway string, vary func(string) string, requests []request) {
	t.Helper()
	type pair struct {
		direct, through *answer
		errors          [2]error
	}
	pairs := make([]pair, len(requests))
	for i := range requests {
		r, p := &requests[i], &pairs[i]
		p.direct, p.errors[0] = r.send(direct)
		p.through, p.errors[1] = r.send(gateway)
	}
	address := func(s string) string {
		return vary(strings.NewReplacer(direct, "ADDRESS", gateway, "ADDRESS").Replace(s))
	}
	for i := range requests {
		r, p := &requests[i], &pairs[i]
		prove(t, r.name, func(t *proof) {
			if p.errors[0] != nil || p.errors[1] != nil {
				t.Fatalf("direct: %v; through the gateway: %v", p.errors[0], p.errors[1])
			}
			if rows := differences(p.direct, p.through, address); len(rows) > 0 {
				t.Errorf("%s %s:\n%s", r.method, r.target, table(rows))
			}
		})
	}
}
