package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProbe: a probe distinguishes backends that compare If-Match from others, and leaves the
// object as it is.
func TestProbe(t *testing.T) {
	const object = `{"id":1, "n":1.50}`
	for name, c := range map[string]struct {
		etag     string
		compares bool
		refused  int
		want     string
	}{
		"compared":            {`"1"`, true, 0, "compares If-Match (412): no update is lost"},
		"compared, weak":      {`W/"1"`, true, 0, "a weak ETag, which If-Match never matches: writes cannot be pinned"},
		"not compared":        {`"1"`, false, 0, "gives a strong ETag and does not compare If-Match (it answered 200)"},
		"without an ETag":     {"", false, 0, "gives no ETag and does not compare If-Match"},
		"PUT is not possible": {`"1"`, false, 405, "is answered 405 Method Not Allowed, so that nobody knows"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := object
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.etag != "" {
					w.Header().Set("ETag", c.etag)
				}
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodPut {
					body, _ := io.ReadAll(r.Body)
					switch {
					case c.refused != 0:
						w.WriteHeader(c.refused)
					case c.compares && r.Header.Get("If-Match") != c.etag:
						w.WriteHeader(http.StatusPreconditionFailed)
					default:
						stored = string(body)
					}
				}
				_, _ = io.WriteString(w, stored)
			}))
			defer s.Close()
			said, err := probe(t.Context(), s.URL+"/v1/notes/1")
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, c.want) || stored != object {
				t.Errorf("got %q, %s is stored; want %q", said, stored, c.want)
			}
		})
	}
}
