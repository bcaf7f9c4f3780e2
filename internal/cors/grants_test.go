package cors

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// request returns the head of a request by a page.
func request(t *testing.T, origin string) *message.Head {
	t.Helper()
	h := &message.Head{}
	if err := h.Parse([]byte("GET /a HTTP/1.1\r\nHost: gw\r\nOrigin: "+origin+"\r\n\r\n"),
		&message.Options{}); err != nil {
		t.Fatal(err)
	}
	return h
}

// answered returns an answer of a backend with these lines.
func answered(lines string) *message.Response {
	r := &message.Response{}
	r.Receive(204, []byte("HTTP/1.1 204 No Content\r\n"+lines+"\r\n"))
	return r
}

// shared returns the lines that an answer of the gateway gets.
func shared(s *Grants, head *message.Head, ask Ask) string {
	r := &message.Response{}
	r.Start(204)
	before := string(r.Head())
	s.Share(head, "/a", r, ask)
	return strings.TrimPrefix(string(r.Head()), strings.TrimSuffix(before, "\r\n"))
}

const nothing = "\r\n"

// TestRememberedForItsTime: a grant holds for an hour since it was seen last, a refusal for minutes, a question without
// an answer for seconds.
func TestRememberedForItsTime(t *testing.T) {
	for _, test := range []struct {
		name   string
		lines  string
		err    error
		kept   time.Duration
		grants bool
	}{
		{"grant", "Access-Control-Allow-Origin: https://a.example\r\n", nil, grantedFor, true},
		{"refusal", "", nil, refusedFor, false},
		{"failure", "", errors.New("too slow"), failedFor, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, head, asked := NewGrants(), request(t, "https://a.example"), 0
				ask := func(*Preflight) (*message.Response, error) { asked++; return answered(test.lines), test.err }
				expect := func(when string, n int) {
					t.Helper()
					got := shared(s, head, ask)
					if (got != nothing) != test.grants || asked != n {
						t.Errorf("%s: %d questions and %q", when, asked, got)
					}
				}
				expect("first", 1)
				time.Sleep(test.kept - time.Nanosecond)
				expect("just before the end", 1)
				time.Sleep(time.Nanosecond)
				expect("at the end", 2)
			})
		})
	}
}

// TestQuestionsAreBounded: however many origins are made up, a backend is asked seldom and little is kept of them.
// What it granted stays.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewGrants()
		s.Note(request(t, "https://a.example"), "/a", answered("Access-Control-Allow-Origin: https://a.example\r\n"),
			time.Now())
		asked := 0
		for second := range 100 {
			for n := range 2 * askedPerSecond {
				got := shared(s, request(t, fmt.Sprintf("https://%d-%d.example", second, n)),
					func(*Preflight) (*message.Response, error) { asked++; return answered(""), nil })
				if got != nothing {
					t.Fatalf("a stranger may read: %q", got)
				}
			}
			time.Sleep(time.Second)
		}
		if asked != 100*askedPerSecond || s.refused.Len() != maxRefused {
			t.Errorf("asked %d times, and keeps %d refusals", asked, s.refused.Len())
		}
		if got := shared(s, request(t, "https://a.example"), nil); got == nothing {
			t.Error("the grant is gone")
		}
	})
}

// TestAskedOnce: requests that come while a question is asked wait for its answer.
func TestAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewGrants()
		asked := 0
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				got := shared(s, request(t, "https://a.example"), func(*Preflight) (*message.Response, error) {
					asked++
					time.Sleep(time.Second)
					return answered("Access-Control-Allow-Origin: https://a.example\r\nAccess-Control-Allow-Credentials: true\r\n"), nil
				})
				want := "Access-Control-Allow-Origin: https://a.example\r\nAccess-Control-Allow-Credentials: true\r\n" +
					"Access-Control-Expose-Headers: Retry-After, RateLimit, RateLimit-Policy, Warning, ETag, Location\r\nVary: Origin\r\n\r\n"
				if got != want {
					t.Errorf("answered %q, want %q", got, want)
				}
			})
		}
		wait.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestPreflightKeepsWhatIsExposed: a preflight does not say which headers are exposed, so that it does not hide them.
func TestPreflightKeepsWhatIsExposed(t *testing.T) {
	s, head := NewGrants(), request(t, "https://a.example")
	const grant = "Access-Control-Allow-Origin: https://a.example\r\n"
	s.Note(head, "/a", answered(grant+"Access-Control-Expose-Headers: X-Total\r\nAccess-Control-Expose-Headers: etag\r\n"), time.Now())
	s.Note(head, "/a", answered(grant), time.Now())
	want := grant + "Access-Control-Expose-Headers: X-Total, etag, Retry-After, RateLimit, RateLimit-Policy, Warning, Location\r\nVary: Origin\r\n\r\n"
	if got := shared(s, head, nil); got != want {
		t.Errorf("answered %q, want %q", got, want)
	}
	if got := shared(s, request(t, "https://b.example"),
		func(*Preflight) (*message.Response, error) { return answered(grant), nil }); got != nothing {
		t.Errorf("another page reads: %q", got)
	}
}

// TestScripted: a question names the headers that a script has set, and no others.
func TestScripted(t *testing.T) {
	var head message.Head
	const lines = "Host: gw\r\nOrigin: https://a.example\r\nX-B: 1\r\nx-a: 2\r\nX-B: 3\r\nAuthorization: Bearer t\r\nAccept: a/b\r\nAccept-Language: de\r\nUser-Agent: u\r\n" +
		"Referer: r\r\nCookie: c=d\r\nSec-Fetch-Mode: cors\r\nCache-Control: no-cache\r\nIf-Match: \"1\"\r\nX-Forwarded-For: 1.2.3.4\r\nContent-Length: 0\r\n"
	for contentType, want := range map[string]string{
		"application/json":                  "authorization,content-type,if-match,x-a,x-b",
		"Text/Plain; charset=utf-8":         "authorization,if-match,x-a,x-b",
		"multipart/form-data; boundary=x":   "authorization,if-match,x-a,x-b",
		"application/x-www-form-urlencoded": "authorization,if-match,x-a,x-b",
	} {
		if err := head.Parse([]byte("PUT /a HTTP/1.1\r\n"+lines+"Content-Type: "+contentType+"\r\n\r\n"),
			&message.Options{}); err != nil {
			t.Fatal(err)
		}
		got := string((&Preflight{Head: &head, Origin: "https://a.example", Target: "/a?b"}).AppendHead(nil))
		whole := "OPTIONS /a?b HTTP/1.1\r\nHost: gw\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: " + want + "\r\nAccept: */*\r\n\r\n"
		if got != whole {
			t.Errorf("%s: asked %q, want %q", contentType, got, whole)
		}
	}
}
