package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// judgedLines are header lines by which a backend takes a request for another one. X-Edited is one that is its
// author's.
var judgedLines = []string{
	"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_Method_Override", "Content-Type",
	"Content-Encoding", "If-Match", "If-None-Match", "If-Modified-Since",
	"If-Unmodified-Since", "If-Range", "If_Match", "X-Original-URL", "X-Rewrite-URL", "X-Edited",
}

// TestFiltersLeaveJudgedLines: a filter of a route cannot make the backend, or a mirror, take a request that was judged
// for another one, nor one that passes for one that files describe, and the log says so. What nothing judges it edits.
func TestFiltersLeaveJudgedLines(t *testing.T) {
	const parcel = `{"apiVersion":"shop.example.com/v1","kind":"Parcel","metadata":{"name":"p1","namespace":"team-a"},"spec":{"weight":2}}`
	var mu sync.Mutex
	got := map[string]string{}
	noting := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var lines []string
			for _, line := range judgedLines {
				for key, values := range r.Header {
					if strings.EqualFold(key, line) && strings.Join(values, "") == "filter" {
						lines = append(lines, line)
					}
				}
			}
			mu.Lock()
			got[name+" "+r.Method+" "+r.URL.Path] = strings.Join(lines, " ")
			mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			if len(body) == 0 {
				body = []byte(parcel)
			}
			_, _ = w.Write(body)
		}
	}
	edits := &routing.HeaderEdits{}
	for _, name := range judgedLines {
		edits.Set = append(edits.Set, routing.Header{Name: name, Value: "filter"})
	}
	table := tableOf([]routing.Backend{serviceOf(t, "main", noting("main")), serviceOf(t, "mirror", noting("mirror"))},
		ruleOf("all", prefix("/"), 0, routing.Filter{Mirror: &routing.Mirror{Backend: 1}},
			routing.Filter{Request: edits}))
	const every = "X-HTTP-Method-Override X-HTTP-Method X-Method-Override X_HTTP_Method_Override Content-Type Content-Encoding If-Match If-None-Match If-Modified-Since If-Unmodified-Since If-Range If_Match"
	for _, c := range []struct {
		method, path, body, want string
		isDescribed              bool // files describe something
		said                     string
	}{
		{"POST", "/v1/tenants/team-a/parcels", parcel, "X-Edited", true, every + " X-Original-URL X-Rewrite-URL"},
		{"GET", "/v1/tenants/team-a/parcels/p1", "", "X-Edited", true, every + " X-Original-URL X-Rewrite-URL"},
		{"DELETE", "/v1/tenants/team-a/parcels/p1", "", "X-Edited", true, every + " X-Original-URL X-Rewrite-URL"},
		{"POST", "/other", "x", every + " X-Edited", true, "X-Original-URL X-Rewrite-URL"},
		{"POST", "/v1/tenants/team-a/parcels", parcel, every + " X-Original-URL X-Rewrite-URL X-Edited", false, ""},
	} {
		var log syncBuffer
		set := noPolicies()
		if c.isDescribed {
			set = policiestest.LoadFiles(t, "testdata/policies/parcels.yaml")
		}
		g := newTabled(t, bare(t), table, func() *policies.Set { return set })
		g.log = slog.New(slog.NewTextHandler(&log, nil))
		address := serveTable(t, g)
		r, err := http.NewRequest(c.method, "http://"+address+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode > http.StatusCreated {
			t.Fatalf("%+v is answered %d", c, a.StatusCode)
		}
		for _, name := range []string{"main", "mirror"} {
			key := name + " " + c.method + " " + c.path
			testutil.Becomes(t, true, func() bool {
				mu.Lock()
				defer mu.Unlock()
				_, is := got[key]
				return is
			})
			mu.Lock()
			want := c.want
			if name == "mirror" { // to which the gateway says itself what it copies
				want = strings.Replace(want, "Content-Type ", "", 1)
			}
			if got[key] != want {
				t.Errorf("%s of %+v: filters edit %q, want %q", name, c, got[key], want)
			}
			delete(got, key)
			mu.Unlock()
		}
		said := ""
		if c.said != "" {
			said = fmt.Sprintf("route=HTTPRoute/infra/all rule=0 headers=%q", strings.ReplaceAll(c.said, " ", ", "))
		}
		if text := log.String(); c.said == "" && strings.Contains(text, "filters of a route") ||
			!strings.Contains(text, said) {
			t.Errorf("of %+v the log says %s, want %s", c, text, said)
		}
	}
}

// TestEditing: what filters may edit of a request depends on what files say of it.
func TestEditing(t *testing.T) {
	edits := &message.Edits{}
	for _, name := range judgedLines {
		edits.Set(name, "filter")
	}
	for _, tt := range []struct {
		undescribed config.Undescribed
		info        resource.Info
		isDescribed bool
		want        int // how many lines are left alone
	}{
		{config.PassUndescribed, resource.Info{}, true, 14},
		{config.PassUndescribed, resource.Info{IsUndescribed: true}, true, 2},
		{config.PassUndescribed, resource.Info{IsUndescribed: true}, false, 0},
		// the method is not described, the path is
		{config.PassUndescribed, resource.Info{IsUndescribed: true, IsOtherMethod: true}, true, 14},
		{config.DenyWrites, resource.Info{IsUndescribed: true}, false, 14}, // a GET must not be a write
	} {
		e, left := editingOf(&route{undescribed: tt.undescribed, edits: edits, mirrorEdits: edits}, &tt.info,
			tt.isDescribed)
		if len(left) != tt.want || (e.request == edits) != (tt.want == 0) || (e.copies == edits) != (tt.want == 0) {
			t.Errorf("%+v: %q are left alone, want %d", tt, left, tt.want)
		}
	}
	if e, left := editingOf(&route{}, &resource.Info{}, true); e.request != nil || e.copies != nil || left != nil {
		t.Errorf("without filters %v is edited, and %q left alone", e, left)
	}
}
