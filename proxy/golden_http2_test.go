package proxy

import (
	"bytes"
	"errors"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

// TestGoldenHTTP2 plays the golden scenarios a second time by HTTP/2: the backend gets the same, and the client the
// same answers, but for what the protocols have of their own. Stories of what HTTP/2 has no form for are left out.
func TestGoldenHTTP2(t *testing.T) {
	all := scenario.ReadAll(t, "testdata/way")
	played := 0
	for _, s := range all {
		if slices.ContainsFunc(s.Sections("request."), func(request []byte) bool {
			_, _, err := h2test.Translate(scenario.Wire(request))
			return errors.Is(err, h2test.ErrOnlyHTTP1)
		}) {
			continue
		}
		played++
		t.Run(s.Name(), func(t *testing.T) {
			upstream, answers := tellGolden(t, s,
				func(t testing.TB, address string) net.Conn { return h2test.Adapt(t, address) })
			compareHTTP2(t, "upstream", upstream, s.Section("upstream"))
			compareHTTP2(t, "response", answers, s.Section("response"))
		})
	}
	if played < len(all)*3/4 {
		t.Errorf("only %d of %d scenarios have a form in HTTP/2", played, len(all))
	}
}

// ownLines are lines of heads that one of the protocols has and the other has not.
var ownLines = regexp.MustCompile(`(?mi)^(connection|keep-alive|transfer-encoding|content-length): .*\n`)

// quoted matches the name of a header in a message.
var quoted = regexp.MustCompile(`the header '[^']+'`)

// heads matches the heads of messages.
var heads = regexp.MustCompile(`(?m)^(HTTP/1\.1 \d+ .*|[A-Z]+ /\S* HTTP/1\.1)\n(?:.+\n)*`)

// compareHTTP2 compares messages but for the names of fields in capital letters, their order, and what protocols have
// of their own.
func compareHTTP2(t *testing.T, name string, got, want []byte) {
	t.Helper()
	like := func(b []byte) string {
		b = ownLines.ReplaceAll(b, nil)
		b = quoted.ReplaceAllFunc(b, bytes.ToLower)
		return string(heads.ReplaceAllFunc(b, func(head []byte) []byte {
			lines := strings.Split(strings.TrimSuffix(string(head), "\n"), "\n")
			for i, l := range lines[1:] {
				field, value, _ := strings.Cut(l, ":")
				lines[i+1] = strings.ToLower(field) + ":" + strings.Replace(value, " 2.0 ", " 1.1 ", 1)
			}
			slices.Sort(lines[1:])
			return []byte(strings.Join(lines, "\n") + "\n")
		}))
	}
	if g, w := like(got), like(want); g != w {
		t.Errorf("%s by HTTP/2:\n%s\nwant:\n%s", name, g, w)
	}
}
