package doctest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var digits = regexp.MustCompile(`(?m)^[0-9]+$`)

func TestParse(t *testing.T) {
	const page = "# A page\n\nWrite `a/b.yaml`, which\nis a file:\n\n```yaml\na: 1\n```\n\nIn a terminal of its own, start it:\n\n```sh\nserve\n```\n\n" +
		"Ask:\n\n```sh\nask one\nask two\n```\n```json\n{}\n```\n"
	got, err := parse(page)
	want := []block{
		{line: 6, language: "yaml", text: "a: 1\n", file: "a/b.yaml"},
		{line: 12, language: "sh", text: "serve\n", isServer: true},
		{line: 18, language: "sh", text: "ask one\nask two\n"},
		{line: 22, language: "json", text: "{}\n"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := parse("```sh\na\n"); err == nil {
		t.Error("a block without an end is read")
	}
}

// TestFollow follows a page with a file, a server, a script and an answer.
func TestFollow(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "Write `a.txt`:\n\n```text\nport 8080\n```\n\nIn a terminal of its own:\n\n```sh\necho serving; sleep 100\n```\n\n" +
		"Read it:\n\n```sh\ncat a.txt; date +%s; false\n```\n```text\nport 8080\n1768382044\n```\n\n```sh\ntest \"$(cat a.txt)\" != \"port 80\"80 && gateway version\n```\n" +
		reference + "\n```yaml\nnot: followed\n```\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Follow(page, Options{Gateway: "true", Volatile: digits}); err != nil {
		t.Error(err)
	}
}

// TestFollowErrors shows that a page which does not hold is found.
func TestFollowErrors(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"another answer":       {"```sh\necho a\n```\n```text\nb\n```\n", "page.md:1: prints\na"},
		"a command that fails": {"```sh\nfalse\n```\n", "page.md:1: exit status 1"},
		"a server that ends": {"In a terminal of its own:\n\n```sh\necho why\n```\n",
			"page.md:3: the server ended\necho why\nwhy"},
		"an answer to nothing":   {"```json\n{}\n```\n", "page.md:1: the block is neither a file nor an answer"},
		"a block without an end": {"```sh\necho\n", "the block of line 1 does not end"},
	} {
		page := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(page, []byte(c.page), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Follow(page, Options{Gateway: "true"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}
