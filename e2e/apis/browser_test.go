package apis

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A call to the API by a script on a page.
type call struct {
	Step   string            `json:"step"`
	Method string            `json:"method"`
	Target string            `json:"target"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
}

// browse opens a page of one origin in a browser, and runs calls of its script to the API at another origin.
func browse(t *testing.T, api string, calls []call) transcript {
	t.Helper()
	file := debian(t, "chromium")
	page := httptest.NewServer(http.FileServer(http.Dir("testdata")))
	t.Cleanup(page.Close)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(file),
		chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if _, err := chromedp.Run(ctx, chromedp.Navigate(page.URL+"/page.html")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute) // only now: the browser lives as long as the first context
	t.Cleanup(stop)
	all := make(transcript, len(calls))
	for i, c := range calls {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("var api = %q; call(%s)", "http://"+api, text)
		line, err := chromedp.Run(ctx, chromedp.Evaluate[transcriptLine](script, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", c.Step, err)
		}
		all[i] = line
	}
	return all
}

var asJSON = map[string]string{"Content-Type": "application/json"}

func bookCalls() []call {
	return []call{
		{Step: "login", Method: "POST", Target: "/v1/login", Header: asJSON, Body: `{"user":"ann"}`},
		{Step: "login-refused", Method: "POST", Target: "/v1/login", Header: asJSON, Body: `{"user":"bob"}`},
		{Step: "create", Method: "POST", Target: "/v1/books", Header: asJSON, Body: `{"title":"one"}`},
		{Step: "create-invalid", Method: "POST", Target: "/v1/books", Header: asJSON, Body: `{"title":""}`},
		{Step: "read", Method: "GET", Target: "/v1/books/1"},
		{Step: "read-missing", Method: "GET", Target: "/v1/books/99"},
		{Step: "list", Method: "GET", Target: "/v1/books?limit=5"},
		{Step: "update", Method: "PUT", Target: "/v1/books/1", Header: asJSON, Body: `{"title":"two"}`},
		{Step: "patch", Method: "PATCH", Target: "/v1/books/1", Header: asJSON, Body: `{"price_cents":300}`},
		{Step: "upload", Method: "POST", Target: "/v1/covers", Body: "FILE"},
		{Step: "delete", Method: "DELETE", Target: "/v1/books/1"},
		{Step: "delete-missing", Method: "DELETE", Target: "/v1/books/1"},
	}
}

// TestBrowserWithoutFiles: a page's script reads the same answers through the gateway as without it.
func TestBrowserWithoutFiles(t *testing.T) {
	debian(t, "chromium")
	direct, gateway := startTwice(t, func() *program { return startFastify(t) })
	proveSameTranscript(t, browse(t, direct, bookCalls()), browse(t, gateway, bookCalls()), varying())
}

const fewCreates = `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: few-creates}
spec:
  match: {verbs: [create], resources: [books]}
  key: ClientAddress
  requests: 3
  periodSeconds: 3600
`

// TestBrowserWithFiles: a page's script reads what the gateway itself says, too.
func TestBrowserWithFiles(t *testing.T) {
	debian(t, "chromium")
	_, gateway := startDescribed(t, "3.0.3", fewCreates)
	calls := append(bookCalls(), call{Step: "create-again", Method: "POST", Target: "/v1/books", Header: asJSON,
		Body: `{"title":"three"}`},
		call{Step: "create-too-many", Method: "POST", Target: "/v1/books", Header: asJSON, Body: `{"title":"four"}`})
	got := browse(t, gateway.address, calls)
	for _, want := range []struct {
		step string
		code int
		text string // within the body
	}{
		{"login", 200, `"token":"t"`},
		{"login-refused", 401, "E_LOGIN"},
		{"create", 201, `"price_cents":100`},
		{"create-invalid", 422, "title"},
		{"read", 200, `"title":"one"`},
		{"read-missing", 404, "E_NO_BOOK"},
		{"list", 200, `"title":"one"`},
		{"update", 200, `"title":"two"`},
		{"patch", 200, `"price_cents":300`},
		{"upload", 200, `"size":1000`},
		{"delete", 204, ""},
		{"delete-missing", 404, "E_NO_BOOK"},
		{"create-again", 201, `"title":"three"`},
		{"create-too-many", 429, ""},
	} {
		prove(t, want.step, func(t *proof) {
			a := got.of(want.step)[0]
			if a.code != want.code || !strings.Contains(a.body, want.text) {
				t.Errorf("the script read %d %q, want %d with %q", a.code, a.body, want.code, want.text)
			}
			if want.code == http.StatusTooManyRequests && a.header.Get("Retry-After") == "" {
				t.Errorf("the script cannot read Retry-After: %v", a.header)
			}
		})
	}
}
