package reword

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write testdata/public.txt")

// TestPublicMessages: of the messages in public definitions and policies exactly the ones in testdata/public.txt are
// reworded, and each as it says there. A person has read the file: a message is named by its hash, with what is
// replaced and by what.
func TestPublicMessages(t *testing.T) {
	messages := publicMessages(t)
	if len(messages) < 300 {
		t.Fatalf("only %d messages, want 300 or more", len(messages))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages\n", len(messages))
	for _, message := range slices.Sorted(maps.Keys(messages)) {
		if better, problems := Message(message); len(problems) > 0 {
			from, to := difference(message, better)
			fmt.Fprintf(&b, "%x %s: %q -> %q\n", sha256.Sum256([]byte(message)), messages[message], from, to)
		}
	}
	const golden = "testdata/public.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// difference returns the words in which two texts differ, without what is equal before and behind.
func difference(a, b string) (string, string) {
	x, y := strings.Fields(a), strings.Fields(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return strings.Join(x, " "), strings.Join(y, " ")
}

// publicMessages returns the messages of definitions and policies that others have published, each with where it is
// from.
func publicMessages(t *testing.T) map[string]string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = "../shared/suites"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir)
	}
	data := filepath.Join(dir, "data")
	if _, err := os.Stat(data); err != nil {
		t.Skipf("the public definitions are not here: %v (set SUITES_DIR)", err)
	}
	found := map[string]string{}
	for _, from := range []string{"gateway-api", "kubescape-cel", "cert-manager", "gatekeeper-library"} {
		err := filepath.WalkDir(filepath.Join(data, from), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			content, err := os.ReadFile(path)
			if err == nil {
				messagesIn(content, from, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Open(filepath.Join(data, "openshift-api", "openshift-api.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(header.Name, ".yaml") || !strings.Contains(header.Name, "crd-manifests") {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		messagesIn(content, "openshift-api", found)
	}
}

// violation matches a message in Rego.
var violation = regexp.MustCompile(`msg\s*:?=\s*(?:sprintf\()?"((?:[^"\\]|\\.)+)"`)

// messagesIn adds the messages of a file. What is no YAML is left out.
func messagesIn(content []byte, from string, found map[string]string) {
	for d := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var n yaml.Node
		if d.Decode(&n) != nil {
			break
		}
		walk(&n, from, found)
	}
	for _, m := range violation.FindAllSubmatch(content, -1) {
		found[string(m[1])] = from
	}
}

func walk(n *yaml.Node, from string, found map[string]string) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.SequenceNode &&
			(n.Content[i-1].Value == "x-kubernetes-validations" || n.Content[i-1].Value == "validations") {
			for _, rule := range c.Content {
				for j := 0; j+1 < len(rule.Content); j += 2 {
					if text := strings.TrimSpace(rule.Content[j+1].Value); rule.Content[j].Value == "message" &&
						text != "" {
						found[text] = from
					}
				}
			}
		}
		walk(c, from, found)
	}
}
