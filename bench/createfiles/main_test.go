package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// maxFiles is how many files a create may pass: who reads the way of a create reads all of them. A
// backend that has no versions and metadata of its own needs more of them.
var maxFiles = map[string]int{"Kubernetes": 19, "Plain": 20}

// TestDocumented runs the command, and compares its answer with the list in the page about the
// architecture.
func TestDocumented(t *testing.T) {
	const module = "github.com/admission-gateway/gateway/"
	command := exec.Command("go", "run", "-cover", "-covermode=atomic",
		"-coverpkg="+module+"proxy/...,"+module+"internal/storage/...,"+module+"bench/createfiles", module+"bench/createfiles")
	command.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "```\n" + string(out) + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/architecture.md does not have\n%s", want)
	}
	found := regexp.MustCompile(`(\w+): (\d+) files`).FindAllStringSubmatch(string(out), -1)
	for _, m := range found {
		if n, err := strconv.Atoi(m[2]); err != nil || n > maxFiles[m[1]] {
			t.Errorf("a create before a backend of the dialect %s passes %s files, want at most %d", m[1], m[2], maxFiles[m[1]])
		}
	}
	if len(found) != len(maxFiles) {
		t.Errorf("the command lists %d dialects, want %d", len(found), len(maxFiles))
	}
}
