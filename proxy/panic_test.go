package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

// panicking is a storage whose reads panic: before there is an answer, or with one that is not sent yet.
type panicking struct {
	storage.Storage
	code int // of the answer that is not sent; 0 for none
}

func (s panicking) Read(r *storage.Request) error {
	if s.code > 0 {
		r.Response.StartJSON(s.code, nil, []byte("{}"))
	}
	panic("what nobody expects")
}

// panickingKind is a kind of backend whose storages panic.
type panickingKind struct {
	kind
	code int
}

func (k panickingKind) storage(g *Gateway, set *policies.Set, b *backend, r *resource.Resource, i *resource.Info, own,
	object *admission.Scoped) storage.Storage {
	return panicking{k.kind.storage(g, set, b, r, i, own, object), k.code}
}

// panicIn makes the storages of a gateway panic that serves no request yet.
func panicIn(g *Gateway, code int) {
	for _, b := range g.routes.backends {
		b.kind = panickingKind{b.kind, code}
	}
}

// TestPanicCounted: a request whose handler panics is counted by the answer that the client gets.
func TestPanicCounted(t *testing.T) {
	for _, code := range []int{0, http.StatusOK} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			g, address, _ := filledGateway(t)
			panicIn(g, code)
			nc, br := dial(t, address)
			send(t, nc, "GET "+widgetsPath+"/w1 HTTP/1.1\r\nHost: gw\r\n\r\n")
			r, err := http.ReadResponse(br, nil)
			if err != nil || r.StatusCode != http.StatusInternalServerError || !r.Close {
				t.Fatalf("answered %+v, %v", r, err)
			}
			want := "gateway_requests_in_flight 0\n" +
				`gateway_requests_total{code="500",group="example.com",resource="widgets",route="",upstream="default",verb="get"} 1` + "\n"
			// The client may have the answer before the request is counted.
			testutil.Becomes(t, want, func() string {
				page := httptest.NewRecorder()
				g.metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
				var got []string
				for line := range strings.Lines(page.Body.String()) {
					if strings.HasPrefix(line, "gateway_requests_total{") ||
						strings.HasPrefix(line, "gateway_requests_in_flight ") {
						got = append(got, line)
					}
				}
				slices.Sort(got)
				return strings.Join(got, "")
			})
		})
	}
}
