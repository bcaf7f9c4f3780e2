package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

var update = flag.Bool("update", false, "write what the commands print into their golden files")

// took matches how long something took, which differs from run to run.
var took = regexp.MustCompile(`\d+(\.\d+)?(µs|ms|s)\b|"seconds": [0-9.e-]+|time="[0-9.e-]+"`)

// TestCommands runs the commands of each golden file in a folder with the file's own files, and
// compares their output and exit codes with it. -update writes it down.
func TestCommands(t *testing.T) {
	files, err := filepath.Glob("testdata/commands/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600") // of manual pages
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, rest, hasFiles := strings.Cut(string(data), "\n-- ")
			dir := t.TempDir()
			if hasFiles {
				for part := range strings.SplitSeq(rest, "\n-- ") {
					name, text, _ := strings.Cut(part, " --\n")
					if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
						t.Fatal(err)
					}
					testutil.WriteFile(t, filepath.Join(dir, name), text+"\n")
				}
				rest = "\n-- " + rest
			}
			full, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			var got bytes.Buffer
			for line := range strings.SplitSeq(script, "\n") {
				switch command, isCommand := strings.CutPrefix(line, "$ gateway "); {
				case isCommand:
					r := run(strings.Fields(command)...)
					fmt.Fprintf(&got, "%s\n%s", line, took.ReplaceAllString(r.stdout, "TIME"))
					for said := range strings.Lines(r.stderr) {
						got.WriteString("stderr: " + said)
					}
					fmt.Fprintf(&got, "exit %d\n\n", r.code)
				case strings.HasPrefix(line, "# "):
					got.WriteString(line + "\n")
				case strings.HasPrefix(line, "$ cat "):
					text, err := os.ReadFile(strings.TrimPrefix(line, "$ cat "))
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&got, "%s\n    %s\n\n", line,
						strings.ReplaceAll(strings.TrimRight(string(text), "\n"), "\n", "\n    "))
				}
			}
			want := strings.TrimRight(got.String(), "\n") + "\n" + rest
			if want == string(data) {
				return
			}
			if *update {
				testutil.WriteFile(t, full, want)
				return
			}
			t.Errorf("%s is not what is printed now:\n%s", file, want)
		})
	}
}
