package apis

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// saidOf matches the line of the log about an answer that departs from the document.
var saidOf = regexp.MustCompile(`msg="an answer is not what the API's document declares" upstream=\S+ resource=(\S+) verb=(\S+) code=(\d+) kind=(\S+) field=(\S+)`)

// TestAnswersOfFastify: with `responses: Warn` in Fastify's own document its answers pass as they come, and the log
// names the ones that the document does not declare: its 404, and books that are shown with more than the document
// allows.
func TestAnswersOfFastify(t *testing.T) {
	api := startNode(t, nodeDir(t), "/openapi.json",
		func(port string) []string { return []string{"fastify.mjs", port} })
	document := (&request{method: "GET", target: "/openapi.json"}).mustSend(t, api.address).body
	for _, edit := range [][2]string{
		{`{"openapi":`, `{"x-admission-gateway-resource":{"responses":"Warn"},"openapi":`},
		{`"price_cents":{`, `"price_cents":{"writeOnly":true,`},
		{`"maxLength":20`, `"maxLength":5`},
	} {
		edited := strings.ReplaceAll(document, edit[0], edit[1])
		if edited == document {
			t.Fatalf("the document has no %s:\n%s", edit[0], document)
		}
		document = edited
	}
	gateway := startGateway(t, api.url(), document)
	var want []string
	for _, c := range []struct {
		request
		code int
		said []string // of its answer
	}{
		{withJSON("create", "POST", "/v1/books", `{"title":"one","price_cents":7}`), 201,
			[]string{"books create 201 WriteOnly price_cents"}},
		{withJSON("patch", "PATCH", "/v1/books/1", `{"price_cents":8}`), 200,
			[]string{"books patch 200 WriteOnly price_cents"}},
		{without("missing", "GET", "/v1/books/99"), 404, []string{`books get 404 Code ""`}},
		{without("delete", "DELETE", "/v1/books/1"), 204, nil},
		{without("empty list", "GET", "/v1/books"), 200, nil},
	} {
		prove(t, c.name, func(t *proof) {
			if a := c.mustSend(t, gateway.address); a.code != c.code {
				t.Errorf("%s %s: %d %s", c.method, c.target, a.code, a.body)
			}
		})
		want = append(want, c.said...)
	}
	long := withJSON("long", "POST", "/v1/books", `{"title":"a long one"}`)
	long.mustSend(t, api.address)
	prove(t, "unchanged", func(t *proof) {
		read := without("read", "GET", "/v1/books/2")
		if direct, through := read.mustSend(t, api.address).body,
			read.mustSend(t, gateway.address).body; direct != through {
			t.Errorf("the gateway answers %s, and the API %s", through, direct)
		}
	})
	want = append(want, "books get 200 Body title", "books get 200 WriteOnly price_cents")
	prove(t, "said", func(t *proof) {
		slices.Sort(want)
		var got []string
		if !eventually(func() bool { // an answer is looked at when it was sent
			got = nil
			for _, m := range saidOf.FindAllStringSubmatch(gateway.log.String(), -1) {
				got = append(got, strings.Join(m[1:], " "))
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		}, nil) {
			t.Errorf("the log names\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
