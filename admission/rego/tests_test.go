package rego

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAnswersOfTests: a test in Rego asks only the hosts that its policy may ask, by redirections too, and
// reads no longer answers.
func TestAnswersOfTests(t *testing.T) {
	led := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://"+strings.Replace(r.Host, "127.0.0.1", "localhost", 1)+"/other",
				http.StatusFound)
		case "/other":
			led = true
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat(" ", maxAnswer+1)) // the client may be gone
		}
	}))
	defer server.Close()
	m := Module{File: "p_test.rego", Tests: true, Source: []byte(strings.ReplaceAll(`package p

ask(path) := http.send({"method": "GET", "url": concat("", ["SERVER", path]), "enable_redirect": true})

test_answer if ask("/").status_code == 200

test_away if ask("/away").status_code == 200

test_long if ask("/long").status_code == 200
`, "SERVER", server.URL))}
	found, err := Test(context.Background(), Options{Hosts: []string{"127.0.0.1"}}, nil, m)
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{"[]", "host: localhost", "at most 1048576 bytes"}
	for i, want := range wants {
		if got := fmt.Sprint(found[i].Problems); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", found[i].Name, got, want)
		}
	}
	if led {
		t.Error("the test asked another host")
	}
}

// TestTimeOfTests: a test in Rego that takes too long fails, and the ones after it are run. A test has
// the time that an evaluation has for a request.
func TestTimeOfTests(t *testing.T) {
	m := Module{File: "p_test.rego", Tests: true, Source: []byte(`package p

test_a_endless if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j < 0
}

test_b_false if 1 > 2
`)}
	found, err := testWithin(context.Background(), time.Second, Options{}, nil, []Module{m})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprint(r.Name, r.Problems))
	}
	if want := fmt.Sprint([]string{"test_a_endless[the policy took longer than 5s]",
		"test_b_false[is not true in line 9: 1 > 2]"}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if maxTime != 5*time.Second {
		t.Errorf("a test has %v", maxTime)
	}
}
