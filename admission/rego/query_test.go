package rego

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// TestParameters: the parameters of an input take precedence over the query's.
func TestParameters(t *testing.T) {
	q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains msg if {\n\tinput.review.n > input.parameters.most\n\tmsg := sprintf(\"at most %d\", [input.parameters.most])\n}\n")
	bound := q.With(Object(Member{"most", number(t, "3")}))
	if bound.native == nil || bound.native != q.native || bound.program != q.program {
		t.Error("the modules were compiled once more for the parameters")
	}
	for _, c := range []struct{ n, most, want string }{{"5", "", "at most 3"}, {"2", "", ""}, {"5", "4", "at most 4"},
		{"5", "7", ""}} {
		in := Input{Review: Object(Member{"n", number(t, c.n)})}
		if c.most != "" {
			in.Parameters = Object(Member{"most", number(t, c.most)})
		}
		found, err := bound.Violations(context.Background(), &in)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range found {
			got += v.Message
		}
		if got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.n, c.most, got, c.want)
		}
	}
}

func number(t *testing.T, text string) Value { return parsed(t, []byte(text)) }

// TestConcurrent evaluates queries for many requests at once.
func TestConcurrent(t *testing.T) {
	queries := benchQueries(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 20 {
				object := strings.ReplaceAll(benchPod, "registry.example.com/mesh",
					fmt.Sprintf("r%d-%d.example.com/mesh", i, j))
				review := parsed(t,
					[]byte(strings.Replace(reviewText(object), `"team-a"`, fmt.Sprintf(`"team-%d-%d"`, i, j), 1)))
				found, err := queries[0].Violations(context.Background(), &Input{Review: review})
				want := fmt.Sprintf("container <proxy> has an invalid image repo <r%d-%d.example.com/mesh/proxy:2.1.0>, allowed repos are [\"registry.example.com/\"]", i, j)
				if err != nil || len(found) != 1 || found[0].Message != want {
					t.Errorf("got %v, %v", found, err)
				}
			}
		})
	}
	wait.Wait()
}

// TestHosts: http.send asks the allowed hosts alone, follows no redirection to others, and reads no more than it may.
func TestHosts(t *testing.T) {
	other := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`"other"`)) }))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/long":
			_, _ = w.Write([]byte(strings.Repeat("a", maxAnswer+1)))
		case "/slow":
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`"yes"`))
		}
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	q := query(t, Options{Hosts: []string{base.Hostname()}}, "data.p.deny",
		"package p\n\ndeny contains http.send(input.request).body\n")
	ask := func(members ...Member) (string, error) {
		in := Input{Root: Object(Member{"request", Object(append(members, Member{"method", Text("get")})...)})}
		in.Deadline = time.Now().Add(2 * time.Second)
		found, err := q.Violations(context.Background(), &in)
		if err != nil || len(found) == 0 {
			return "", err
		}
		return found[0].Message, nil
	}
	if got, err := ask(Member{"url", Text(server.URL)}); got != "yes" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for name, members := range map[string][]Member{
		"another host":  {{"url", Text(elsewhere)}},
		"a redirection": {{"url", Text(server.URL + "/away")}, {"enable_redirect", Flag(true)}},
		"a long answer": {{"url", Text(server.URL + "/long")}},
		"a slow answer": {{"url", Text(server.URL + "/slow")}},
		"a socket":      {{"url", Text("unix://" + base.Hostname() + "/x?socket=/run/x.sock")}},
		"a file":        {{"url", Text(server.URL)}, {"tls_ca_cert_file", Text("/etc/passwd")}},
		"a variable":    {{"url", Text(server.URL)}, {"tls_client_cert_env_variable", Text("HOME")}},
	} {
		if got, err := ask(members...); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestPrint: what modules print is handed on with its place.
func TestPrint(t *testing.T) {
	var got []string
	o := Options{Print: func(file string, line int, text string) {
		got = append(got, fmt.Sprintf("%s:%d: %s", file, line, text))
	}}
	q := query(t, o, "data.p.deny", "package p\n\ndeny contains \"no\" if {\n\tprint(\"n is\", input.n, input.missing)\n}\n")
	if _, err := q.Violations(context.Background(), &Input{Root: Object(Member{"n", Text("a")})}); err != nil {
		t.Fatal(err)
	}
	if want := "dir/p.rego:4: n is a <undefined>"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkLoad compiles the templates of Gatekeeper's library under four names each, with parameters.
func BenchmarkLoad(b *testing.B) {
	files := map[string]bool{}
	for _, c := range recordedCases(b) {
		files[c.PolicyFiles[0]] = true
	}
	b.ReportMetric(float64(4*len(files)), "templates")
	for b.Loop() {
		for file := range files {
			for range 4 {
				templateQuery(b, file).With(Object())
			}
		}
	}
}

// TestKeysOfOneText: of members whose keys have the same text as JSON, the last one in OPA's order
// stands for all, as with OPA.
func TestKeysOfOneText(t *testing.T) {
	for _, text := range []string{
		`{1: "a", "1": "b"}`, `{{"a": 1}: 1, "{\"a\":1}": 2, "x": 3}`,
		`{"x": {[1]: {2: 1, "2": 0}, "[1]": 4}}`, `{null: 1, "null": 2, true: 3, "true": 4}`,
	} {
		term := ast.MustParseTerm(text)
		theirs, err := ast.JSON(term.Value)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := jsonOf(t, Value{term: term}), raw(t, theirs); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
