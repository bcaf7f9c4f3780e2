// Package scenario reads and plays scenarios. A scenario is a file in the format of txtar that shows messages
// of HTTP/1.1 as they are on the wire, and says in its first lines what they show. The documentation
// may quote it.
//
// Its sections are
//
//   - *.yaml: the policy files of the gateway;
//   - config: words for the settings of the gateway, which the test knows;
//   - request.N: what clients send, each on a connection of its own;
//   - backend.N: what the backend answers, in turn;
//   - discovery: what the backend answers to GET /apis, as often as it is asked;
//   - others, such as upstream and response: what came of it, as [Story.Compare] gets it.
//
// In a file lines end in LF. `Content-Length: *` stands for the length of the body, and a star for what
// is another one in each run, such as the time of day.
package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// A Scenario is a file with requests and their answers.
type Scenario struct {
	file    string
	archive *txtar.Archive
}

// Open reads a scenario.
func Open(file string) (*Scenario, error) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		return nil, err
	}
	return &Scenario{file, archive}, nil
}

// Read reads a scenario for a test.
func Read(t testing.TB, file string) *Scenario {
	t.Helper()
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ReadAll reads the scenarios in a folder. There must be one.
func ReadAll(t testing.TB, folder string) []*Scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no scenarios: %v", folder, err)
	}
	all := make([]*Scenario, len(files))
	for i, file := range files {
		all[i] = Read(t, file)
	}
	return all
}

// Name returns the name of the scenario.
func (s *Scenario) Name() string { return strings.TrimSuffix(filepath.Base(s.file), ".txtar") }

// Section returns a section; nil if none has the name.
func (s *Scenario) Section(name string) []byte {
	if i := s.index(name); i >= 0 {
		return s.archive.Files[i].Data
	}
	return nil
}

func (s *Scenario) index(name string) int {
	return slices.IndexFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == name })
}

// Sections returns the sections whose names begin with a prefix, in their order.
func (s *Scenario) Sections(prefix string) [][]byte {
	var all [][]byte
	for _, f := range s.archive.Files {
		if strings.HasPrefix(f.Name, prefix) {
			all = append(all, f.Data)
		}
	}
	return all
}

// WritePolicies writes the policy files into a folder.
func (s *Scenario) WritePolicies(t testing.TB, folder string) {
	t.Helper()
	for _, f := range s.archive.Files {
		if ext := filepath.Ext(f.Name); ext != ".yaml" && ext != ".json" && ext != ".rego" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Compare compares a section with what came of the scenario. If isUpdated is set, it writes that into the
// file instead.
func (s *Scenario) Compare(t testing.TB, name string, got []byte, isUpdated bool) {
	t.Helper()
	i := s.index(name)
	if !isUpdated {
		if i < 0 || !bytes.Equal(s.archive.Files[i].Data, got) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, s.Section(name))
		}
		return
	}
	if i < 0 {
		i = len(s.archive.Files)
		s.archive.Files = append(s.archive.Files, txtar.File{Name: name})
	}
	s.archive.Files[i].Data = got
	if err := os.WriteFile(s.file, txtar.Format(s.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Shows reports whether a section of the scenario has the lines, which documentation quotes.
func (s *Scenario) Shows(lines string) bool {
	return slices.ContainsFunc(s.archive.Files, func(f txtar.File) bool {
		return strings.Contains("\n"+string(f.Data), "\n"+lines)
	})
}

// Wire returns a message of a scenario as it is on the wire: lines of the head end in CRLF, and the body
// is without the last line end.
func Wire(paper []byte) []byte {
	head, body, _ := bytes.Cut(paper, []byte("\n\n"))
	body = bytes.TrimSuffix(body, []byte("\n"))
	head = bytes.ReplaceAll(bytes.TrimSuffix(head, []byte("\n")), []byte("\n"), []byte("\r\n"))
	head = bytes.ReplaceAll(head, []byte("Content-Length: *"),
		strconv.AppendInt([]byte("Content-Length: "), int64(len(body)), 10))
	return append(append(head, "\r\n\r\n"...), body...)
}

// JSON returns a request with a JSON body as it is on the wire. Its line is the method and the target.
func JSON(line, body string) []byte {
	return Wire([]byte(line + " HTTP/1.1\nHost: gw\nContent-Type: application/json\nContent-Length: *\n\n" + body))
}

// volatile matches all that differs from run to run: the time of day, uids, and names that begin with
// 'made-', and revisions in ETags.
var volatile = regexp.MustCompile(`(?m)(^Date: ).*$|("uid":")[0-9a-f-]{36}` +
	`|("creationTimestamp":")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ` +
	`|("deletionTimestamp":")(?:202[5-9]|20[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ` +
	`|(made-)[bcdfghjklmnpqrstvwxz2456789]{5}` +
	`|(-gateway-)[0-9a-f]{8}`)

// Paper returns messages as scenarios show them: without CR, each ending in a line end, and with stars
// for what is volatile.
func Paper(wire []byte) []byte {
	wire = []byte(testutil.WithoutMadeIDs(string(wire)))
	b := volatile.ReplaceAll(bytes.ReplaceAll(wire, []byte("\r\n"), []byte("\n")), []byte("${1}${2}${3}${4}${5}${6}*"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return b
}
