package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented runs the command, and compares its answer with the list in the page about the
// architecture.
func TestDocumented(t *testing.T) {
	const module = "github.com/admission-gateway/gateway/"
	command := exec.Command("go", "run", "-cover", "-covermode=atomic",
		"-coverpkg="+module+"proxy/...,"+module+"internal/storage/...,"+module+"bench/createfiles",
		module+"bench/createfiles")
	command.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "```\n" + string(out) + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/internals/architecture.md does not have\n%s", want)
	}
	if found := regexp.MustCompile(`\w+: \d+ files`).FindAllString(string(out), -1); len(found) != 2 {
		t.Errorf("the command lists %q, want both dialects", found)
	}
}
