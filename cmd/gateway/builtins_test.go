package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// regoBomb is a policy that calls one of OPA's functions with what clients send.
const regoBomb = `
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%[1]s]}]
  rego: |
    package %[1]s

    o := input.review.object

    deny contains "no" if {
      %[2]s
    }
---
`

// TestBuiltinBombs sends bombs for OPA's functions to a gateway in little memory, while other clients read and write
// little: the process lives, they are all served, the memory is bounded, and nothing is read that a schema refers to.
func TestBuiltinBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("sends bombs for half a minute")
	}
	if testutil.Race {
		t.Skip("the race detector takes more memory")
	}
	const memoryLimit, most, bombs = 256 << 20, 300 << 20, 4
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.txt")
	testutil.WriteFile(t, secret, `{"x":{"enum":["hunter2"]}}`)
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	text := func(s string) string { return `{"metadata":{"name":"a"},"q":` + strconv.Quote(s) + `}` }
	object := func(s string) string { return `{"metadata":{"name":"a"},"q":` + s + `}` }
	repeat := strings.Repeat
	balanced := func(open, end string, levels int) string { return repeat(open, levels) + repeat(end, levels) }
	const query = `graphql.parse_query(o.q).Operations != []`
	classes := []struct{ name, rule, body string }{
		{"arguments", query, text("{a(x:" + repeat("[", 2_800_000))},
		{"selections", query, text(repeat("{a", 1_400_000))},
		{"balanced", query, text("{a(x:" + balanced("[", "]", 450_000) + ")}")},
		{"fields", query, text("{" + repeat("a ", 30_000) + "}")},
		{"isvalid", `graphql.is_valid(o.q, "type Query{a:Int}")`, text("{" + repeat("a ", 1_000_000) + "}")},
		{"types", `graphql.schema_is_valid(o.q)`, text(repeat("type A{a:B} ", 200_000))},
		{"itself", `json.match_schema({}, o.q)[0]`, object(`{"$ref":"#"}`)},
		{"verified", `json.verify_schema(o.q)[0]`, object(`{"allOf":[{"$ref":"#"}]}`)},
		{"secrets", `json.match_schema({"x": 1}, o.q)[0]`, object(`{"$ref":"file://` + secret + `#/x"}`)},
		{"endless", `json.match_schema({}, o.q)[0]`, object(`{"$ref":"file:///dev/zero"}`)},
		{"fifos", `json.match_schema({}, o.q)[0]`, object(`{"$ref":"file://` + fifo + `"}`)},
		{"unique", `json.match_schema(o.q, {"uniqueItems": true, "items": {"enum": ["abcdefgh"]}})[0]`, object("[" + repeat("1,", 200_000) + "1]")},
		{"units", `units.parse(o.q) > 1`, text("1e999999")},
		{"digits", `units.parse_bytes(o.q) > 1`, text(repeat("9", 2_900_000))},
		{"subsets", `object.subset(o.q, array.concat(array.slice(o.q, 0, 200000), [2]))`,
			object("[" + repeat("1,", 400_000) + "1]")},
		{"networks", `net.cidr_contains_matches(o.q, o.q) != set()`,
			object(`["10.0.0.0/8"` + repeat(`,"10.0.0.1/32"`, 20_000) + "]")},
		{"patches", `json.patch([], o.q) != []`,
			object(`[{"op":"add","path":"/0","value":1}` + repeat(`,{"op":"add","path":"/0","value":1}`, 20_000) +
				"]")},
		{"loops", `strings.render_template(o.q, {"l": numbers.range(1, 1000)}) != ""`,
			text(balanced("{{range $.l}}", "", 20) + repeat("{{end}}", 20))},
		{"conditions", `strings.render_template(o.q, {}) != ""`, text(repeat("{{if .a}}", 330_000))},
		{"matches", `regex.find_all_string_submatch_n(o.q, concat("", ["a" | numbers.range(1, 20000)[_]]), -1) != []`, text(repeat("(a)", 100_000))},
		{"patterns", `regex.match(o.q, "a")`, text(repeat("a{1000}", 3000))},
		{"pieces", `regex.split(",", o.q) != []`, text(repeat("a,", 1_400_000))},
		{"modules", `rego.parse_module("a", o.q)["package"]`, text("package p\n" + repeat("p if q\n", 350_000))},
		{"aliases", `yaml.unmarshal(o.q) != {}`, text("a: &a [1]\nb:\n" + repeat("- *a\n", 500_000))},
		{"lists", `yaml.unmarshal(o.q) != {}`, text("[" + repeat("1,", 1_350_000) + "1]")},
		{"places", `indexof_n(o.q, "a") != []`, text(repeat("a", 2_900_000))},
		{"splits", `split(o.q, "a") != []`, text(repeat("a", 2_900_000))},
		{"merges", `net.cidr_merge(o.q) != set()`, object(`["10.0.0.0/32"` + repeat(`,"10.0.0.1/32"`, 150_000) + "]")},
		{"globs", `glob.match(o.q, ["."], concat("", ["a" | numbers.range(1, 200)[_]]))`, text(repeat("*a", 30) + "b")},
		// These are as large as the budget allows for, about.
		{"words", query, text("{" + repeat("a ", 9_000) + "}")},
		{"levels", query, text(balanced("{a", "}", 1_500))},
		{"sixty", query, text("{a(x:[" + repeat("1 ", 6_000) + "])}")},
		{"rows", `yaml.unmarshal(o.q) != {}`, text(repeat("- a\n", 30_000))},
		{"values", `json.unmarshal(o.q) != {}`, text("[" + repeat("{},", 50_000) + "1]")},
		{"deep", `json.unmarshal(o.q) != {}`, text(balanced("[", "]", 9_000))},
		{"rendered", `strings.render_template(o.q, {}) != ""`,
			text(repeat("{{if .a}}", 3_500) + repeat("{{end}}", 3_500))},
		{"written", `yaml.marshal(o.q) != ""`, object("[" + repeat("1,", 15_000) + "1]")},
		{"jsons", `json.unmarshal(o.q) != {}`, text("[" + repeat("{},", 900_000) + "1]")},
	}
	testutil.WriteFile(t, filepath.Join(dir, "maps.yaml"), fmt.Sprintf(bombDefinition, "maps"))
	for _, c := range classes {
		testutil.WriteFile(t, filepath.Join(dir, c.name+".yaml"), fmt.Sprintf(bombDefinition, c.name)+
			fmt.Sprintf(regoBomb, c.name, c.rule))
	}
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(backend.Close)
	t.Setenv("GOMEMLIMIT", strconv.Itoa(memoryLimit))
	t.Setenv("GOGC", "100")
	p := startServe(t, strings.TrimPrefix(backend.URL, "http://"), "--policies", dir)

	small := startSmallRequests(t, p.listen)
	for _, c := range classes {
		answers := make([]reply, bombs)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = post(p.listen, "/apis/example.com/v1/namespaces/team-a/"+c.name, c.body) })
		}
		wg.Wait()
		for _, a := range answers {
			if !slices.Contains([]int{200, 201, 413, 422, 500, 503}, a.code) {
				t.Errorf("%s: answered %d: %.300s", c.name, a.code, a.body)
			}
			if strings.Contains(a.body, "hunter2") {
				t.Errorf("%s: the answer says what is in a file: %s", c.name, a.body)
			}
		}
		t.Logf("%s: answered %d: %.200s", c.name, answers[0].code, answers[0].body)
		if p.get("/livez").code != 200 {
			t.Fatalf("%s: the process is gone", c.name)
		}
	}
	small.stop()
	if small.done.Load() == 0 {
		t.Error("no small request is served meanwhile")
	}
	peak := peakMemory(t, p.Process.Pid)
	t.Logf("the process had at most %d MiB; %d small requests took %v at most", peak>>20, small.done.Load(),
		small.slowest(1))
	if peak > most {
		t.Errorf("the process had %d bytes, more than %d", peak, int64(most))
	}
}

// post sends an object; code 0 means there was no answer.
func post(address, path, body string) reply {
	client := &http.Client{Timeout: 4 * testutil.Patience, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://"+address+path, "application/json", strings.NewReader(body))
	if err != nil {
		return reply{body: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{body: err.Error()}
	}
	return reply{code: resp.StatusCode, body: string(answer)}
}

// peakMemory returns the most memory that a process had.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the system does not say how much memory a process had: %v", err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(line), " kB"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
