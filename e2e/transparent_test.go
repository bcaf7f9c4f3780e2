package e2e

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	widgets    = "/apis/e2e.example.com/v1/namespaces/team-a/widgets"
	mergePatch = "application/merge-patch+json"
)

// TestTransparent plays its story without the gateway and through it: the answers are the same, byte for byte, headers
// included.
func TestTransparent(t *testing.T) {
	through := startGateway(t)
	direct, proxied := played(t, server.HTTP, "by-direct-way"), played(t, through.url, "through-gateway")
	if len(direct) < 19 || len(proxied) != len(direct) {
		t.Fatalf("%d requests are answered, and %d through the gateway", len(direct), len(proxied))
	}
	for i, want := range direct {
		line, _, _ := strings.Cut(want, "\n")
		t.Run(strings.Trim(line, "- "), func(t *testing.T) {
			got, at := proxied[i], 0
			for at < len(want) && at < len(got) && want[at] == got[at] {
				at++
			}
			if got != want {
				at = max(0, at-500)
				t.Errorf("through the gateway:\n%.1000s\nfrom the server:\n%.1000s", got[min(at, len(got)):],
					want[min(at, len(want)):])
			}
		})
	}
}

// played plays the story before a server, and returns its requests' first lines and answers, without what changes.
func played(t *testing.T, url, name string) []string {
	t.Helper()
	command := exec.Command("go", "run", "-C", "..", "./internal/testutil/scenario/play", "-name", name,
		strings.TrimPrefix(url, "http://"), "e2e/testdata/transparent.txtar")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return strings.Split(masked(string(out)), "\n-- ")
}

// changing matches what differs from one answer to the next of the same server. A server under load sends now and then
// in chunks what else has a length.
var changing = regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|time)":"[^"]*"` +
	`|(uid|resourceVersion|creationTimestamp|time): [^\n]*|(Audit-Id|Date|Content-Length|Transfer-Encoding|Last-Modified): [^\n]*`)

func masked(s string) string {
	return changing.ReplaceAllStringFunc(s, func(match string) string {
		name, _, _ := strings.Cut(match, ":")
		if name == "Transfer-Encoding" {
			name = "Content-Length"
		}
		return name + ":*"
	})
}
