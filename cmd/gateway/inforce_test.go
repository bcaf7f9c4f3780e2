package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// TestInForce checks each set-up of the golden files: what can never apply is found, with its line and column, and what
// can is accepted without a word. A gateway starts with exactly what check finds no error in. -update writes the
// findings down.
//
// A golden file begins with files that its cases share. A case names those that it takes (`with:`), what it replaces in
// them (`set: old => new`), and has files of its own. The configuration is gateway.yaml; all other files are policies.
func TestInForce(t *testing.T) {
	files, err := filepath.Glob("testdata/inforce/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(data), "\n== ")
		shared := setUp{}
		shared.read(parts[0])
		now := parts[:1:1]
		for _, part := range parts[1:] {
			c := setUp{}
			c.read(part)
			if seen[c.name] {
				t.Errorf("two cases have the name %q", c.name)
			}
			seen[c.name] = true
			got := c.judged(t, &shared)
			if !*update && got != c.want {
				t.Errorf("%s: %s: got\n%swant\n%s", file, c.name, got, c.want)
			}
			text := strings.TrimRight(c.text+"-- want --\n"+got, "\n")
			if got == "" {
				text = strings.TrimRight(c.text, "\n")
			}
			now = append(now, text+"\n")
		}
		if *update {
			testutil.WriteFile(t, file, strings.Join(now, "\n== "))
		}
	}
}

// A setUp is a case of a golden file.
type setUp struct {
	name, text, want string
	with             []string
	sets             [][2]string
	names            []string
	files            map[string]string
}

// read reads the text of a case.
func (c *setUp) read(text string) {
	c.text, c.want, _ = strings.Cut(strings.TrimRight(text, "\n")+"\n", "-- want --\n")
	c.files = map[string]string{}
	head, rest, hasFiles := strings.Cut("\n"+c.text, "\n-- ")
	for i, line := range strings.Split(strings.Trim(head, "\n"), "\n") {
		with, isWith := strings.CutPrefix(line, "with: ")
		set, isSet := strings.CutPrefix(line, "set: ")
		switch {
		case i == 0:
			c.name = line
		case isWith:
			c.with = strings.Fields(with)
		case isSet:
			from, to, _ := strings.Cut(set, " => ")
			c.sets = append(c.sets, [2]string{from, strings.ReplaceAll(to, `\n`, "\n")})
		}
	}
	if !hasFiles {
		return
	}
	for part := range strings.SplitSeq(rest, "\n-- ") {
		name, text, _ := strings.Cut(part, " --\n")
		c.names, c.files[name] = append(c.names, name), strings.TrimRight(text, "\n")+"\n"
	}
}

// judged returns what check finds, and its exit code; "" if that is nothing.
func (c *setUp) judged(t *testing.T, shared *setUp) string {
	t.Helper()
	all := map[string]string{}
	for _, name := range c.with {
		text, known := shared.files[name]
		if !known {
			t.Fatalf("%s: no shared file has the name %q", c.name, name)
		}
		all[name] = text
	}
	for _, set := range c.sets {
		done := false
		for name, text := range all {
			if strings.Contains(text, set[0]) {
				all[name], done = strings.ReplaceAll(text, set[0], set[1]), true
			}
		}
		if !done {
			t.Fatalf("%s: no file has %q", c.name, set[0])
		}
	}
	for name, text := range c.files {
		all[name] = text
	}
	dir := t.TempDir()
	args := []string{"check", "-o", "json"}
	for name, text := range all {
		at := filepath.Join(dir, "policies", name)
		if strings.HasPrefix(name, "gateway") {
			at = filepath.Join(dir, "gateway.yaml")
			args = append(args, "--config", at)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		testutil.WriteFile(t, at, text)
	}
	policyDir := filepath.Join(dir, "policies")
	r := run(append(args, policyDir)...)
	var list struct {
		Findings []struct {
			File, Field, Severity, Message string
			Line, Column                   int
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		t.Fatalf("%s: %+v", c.name, r)
	}
	var b strings.Builder
	hasErrors := false
	for _, f := range list.Findings {
		hasErrors = hasErrors || f.Severity == "error"
		name, err := filepath.Rel(policyDir, f.File)
		if err != nil || strings.HasPrefix(name, "..") {
			name = filepath.Base(f.File)
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s: %s\n", name, f.Line, f.Column, f.Severity, f.Field,
			strings.ReplaceAll(f.Message, policyDir+"/", ""))
	}
	if len(args) > 3 {
		if starts := startsWith(t, args[4], policyDir); starts == hasErrors {
			t.Errorf("%s: a gateway starts: %v, and check finds\n%s", c.name, starts, &b)
		}
	}
	if r.code == 0 && b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("%sexit %d\n", &b, r.code)
}

// startsWith reports whether a gateway with a configuration takes the policies of a folder.
func startsWith(t *testing.T, file, dir string) bool {
	t.Helper()
	c, err := loadForCheck(file)
	if err != nil {
		return false
	}
	_, found := policies.CompileFor(source.Read([]string{dir}, &source.Progress{}), asked(c))
	return !finding.HasErrors(found)
}
