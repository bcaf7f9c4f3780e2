package apis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/e2e/apis/testutil"
)

const (
	pocketBaseUser     = "root@example.com"
	pocketBasePassword = "root-password"
)

// pocketBase builds PocketBase from its module.
func pocketBase(t *testing.T) string {
	t.Helper()
	file := filepath.Join(scratch, "pocketbase")
	if err := testutil.BuildProgram(file, ".", "./pocketbase"); err != nil {
		t.Fatal(err)
	}
	return file
}

func startPocketBase(t *testing.T, file string) *program {
	t.Helper()
	data := "--dir=" + filepath.Join(t.TempDir(), "data")
	if out, err := exec.Command(file, data, "superuser", "upsert", pocketBaseUser,
		pocketBasePassword).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return start(t, "/api/health",
		func(address string) *exec.Cmd { return exec.Command(file, data, "serve", "--http="+address) })
}

// What PocketBase makes anew each time: tokens, names of files, times and ids.
var pocketBaseVaries = varying(`eyJ[\w.-]+`, `\w+\.bin`, `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z`, `pbc_\d+`,
	`\b[a-z]+\d{5,10}\b`, `\b[0-9a-z]{15}\b`)

func TestPocketBaseWithoutFiles(t *testing.T) {
	file := pocketBase(t)
	direct, gateway := startTwice(t, func() *program { return startPocketBase(t, file) })
	proveEqual(t, direct, gateway, pocketBaseVaries, []request{
		without("health", "GET", "/api/health"),
		withJSON("login", "POST", "/api/collections/_superusers/auth-with-password", `{"identity":"`+pocketBaseUser+
			`","password":"`+pocketBasePassword+`"}`),
		withJSON("login-refused", "POST", "/api/collections/_superusers/auth-with-password",
			`{"identity":"`+pocketBaseUser+`","password":"x"}`),
		{name: "login-form", method: "POST", target: "/api/collections/_superusers/auth-with-password",
			header: []string{"Content-Type: application/x-www-form-urlencoded"},
			body:   "identity=" + pocketBaseUser + "&password=" + pocketBasePassword},
		without("preflight", "OPTIONS", "/api/collections/users/records/1", preflight...),
		without("methods", "GET", "/api/collections/users/auth-methods"),
		without("forbidden", "GET", "/api/collections"),
		without("no-such-collection", "GET", "/api/collections/none/records"),
		withJSON("create-invalid", "POST", "/api/collections/users/records", `{"email":"x"}`),
		without("admin-page", "GET", "/_/"),
		without("admin-page-gzip", "GET", "/_/", "Accept-Encoding: gzip"),
	})
}

// TestPocketBaseSDKWithoutFiles: PocketBase's SDK gets the same answers through the gateway as without it.
func TestPocketBaseSDKWithoutFiles(t *testing.T) {
	dir := nodeDir(t)
	file := pocketBase(t)
	direct, gateway := startTwice(t, func() *program { return startPocketBase(t, file) })
	session := func(address string) transcript {
		return runClient(t, dir, "node", "pocketbase.mjs", "http://"+address, pocketBaseUser, pocketBasePassword)
	}
	proveSameTranscript(t, session(direct), session(gateway), func(s string) string {
		return pocketBaseVaries(strings.NewReplacer(direct, "ADDRESS", gateway, "ADDRESS").Replace(s))
	})
}

// A transcript has the answers that a client got, in their order.
type transcript []transcriptLine

type transcriptLine struct {
	Step   string
	Code   int
	Header map[string][]string
	Body   string
}

// of returns the answers of a step.
func (all transcript) of(step string) []*answer {
	var list []*answer
	for _, line := range all {
		if line.Step != step {
			continue
		}
		a := &answer{line.Code, map[string][]string{}, line.Body}
		for name, values := range line.Header {
			for _, value := range values {
				a.header.Add(name, value)
			}
		}
		list = append(list, a)
	}
	return list
}

// withoutMadeETags returns two transcripts without the ETags of objects to which the gateway gives one, because the API
// gives them none or a weak one. Lines are compared in their order.
func withoutMadeETags(direct, through transcript) (transcript, transcript) {
	direct, through = slices.Clone(direct), slices.Clone(through)
	for i := range min(len(direct), len(through)) {
		a, b := http.Header(maps.Clone(direct[i].Header)), http.Header(maps.Clone(through[i].Header))
		for _, name := range []string{"etag", "Etag", "ETag"} {
			own, made := strings.Join(a[name], ""), strings.Join(b[name], "")
			if strings.HasPrefix(made, `"gw-`) && (own == "" || strings.HasPrefix(own, "W/")) {
				delete(a, name)
				delete(b, name)
			}
		}
		direct[i].Header, through[i].Header = a, b
	}
	return direct, through
}

// runClient runs a client that prints its answers.
func runClient(t *testing.T, dir, name string, args ...string) transcript {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, log.String())
	}
	var all transcript
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		next := append(all, transcriptLine{})
		err := lines.Decode(&next[len(all)])
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s printed %q: %v", cmd, out, err)
		}
		all = next
	}
}

// proveSameTranscript makes a proof of each step.
func proveSameTranscript(t *testing.T, direct, through transcript, vary func(string) string) {
	t.Helper()
	var steps []string
	for _, line := range append(slices.Clone(direct), through...) {
		if !slices.Contains(steps, line.Step) {
			steps = append(steps, line.Step)
		}
	}
	for _, step := range steps {
		prove(t, step, func(t *proof) {
			a, b := direct.of(step), through.of(step)
			if len(a) != len(b) {
				t.Fatalf("%s: %d answers directly, %d through the gateway", step, len(a), len(b))
			}
			for i := range a {
				if rows := differences(a[i], b[i], vary); len(rows) > 0 {
					t.Errorf("%s:\n%s", step, table(rows))
				}
			}
		})
	}
}
