package limits

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const file = "# Why.\nproxy 3\npolicies 2\n"
	for _, c := range []struct {
		name       string
		text       string
		write      bool
		found      Counts
		says, left string
		err        string
	}{
		{name: "as the limits say", text: file, found: Counts{"proxy": 3, "policies": 2}},
		{
			name: "more, less and new", text: file, found: Counts{"proxy": 4, "policies": 1, "cmd": 1},
			says: "FILE: cmd: counts 1, more than its limit of 0\n" +
				"FILE: policies: counts 1, less than its limit of 2: lower the limit with `make limits`\n" +
				"FILE: proxy: counts 4, more than its limit of 3",
		},
		{
			name: "gone", text: file, found: Counts{"proxy": 3},
			says: "FILE: policies: counts 0, less than its limit of 2: lower the limit with `make limits`",
		},
		{
			name: "written", text: file, write: true, found: Counts{"proxy": 1, "policies": 2, "cmd": 0},
			left: "# Why.\npolicies 2\nproxy 1\n",
		},
		{
			name: "moved to another name", text: file, write: true, found: Counts{"proxy": 1, "cmd": 4},
			left: "# Why.\ncmd 4\nproxy 1\n",
		},
		{
			name: "written with a larger sum", text: file, write: true, found: Counts{"proxy": 6},
			err: "FILE: the limits may only shrink: their sum is 5, and the code counts 6",
		},
		{name: "no count", text: "proxy\n", err: `FILE: line 1: "proxy": must be a name, a space and a count`},
		{name: "a count of zero", text: "a b 0\n",
			err: `FILE: line 1: "a b 0": the count must be a whole number above 0`},
		{name: "twice", text: "a 1\na 1\n", err: "FILE: line 2: a has a limit already"},
		{name: "a comment between", text: "a 1\n# no\n",
			err: "FILE: line 2: a comment must stand above the first limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "limits.txt")
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			departures, err := run(path, c.write, func() (Counts, error) { return c.found, nil })
			if got := strings.ReplaceAll(strings.Join(departures, "\n"), path, "FILE"); got != c.says {
				t.Errorf("says\n%s\nwant\n%s", got, c.says)
			}
			if got := strings.ReplaceAll(text(err), path, "FILE"); got != c.err {
				t.Errorf("error %q, want %q", got, c.err)
			}
			left, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := c.left
			if want == "" {
				want = c.text
			}
			if string(left) != want {
				t.Errorf("the file holds\n%swant\n%s", left, want)
			}
		})
	}
}

func TestRunCannotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.txt")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	departures, err := run(path, true, func() (Counts, error) { return nil, errors.New("no module") })
	if departures != nil || text(err) != "no module" {
		t.Errorf("%q, %v", departures, err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
