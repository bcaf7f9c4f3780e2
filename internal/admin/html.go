package admin

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/pages"
	"github.com/admission-gateway/gateway/internal/status"
)

// statusPolicy and playgroundPolicy are the Content-Security-Policy of the pages: a browser loads and runs nothing that
// is not on the page itself, and the script of the playground asks this server alone.
var (
	statusPolicy = "default-src 'none'; style-src " + hashSource(pages.Style("status")) + "; form-action 'self'" +
		noFrames
	playgroundPolicy = "default-src 'none'; script-src " + hashSource(pages.Script()) +
		"; style-src " + hashSource(pages.Style("status", "story", "playground")) +
		"; connect-src 'self'; form-action 'none'" + noFrames
)

const noFrames = "; base-uri 'none'; frame-ancestors 'none'"

// hashSource names a style or a script on a page to the policy of the page.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// writeHTML answers with a page.
func writeHTML(ctx *fasthttp.RequestCtx, p *pages.Page, data any, policy string) {
	setHTML(ctx, policy)
	if err := p.Write(ctx, data); err != nil {
		ctx.Response.Reset()
		writeError(ctx, status.Internal("cannot write the page: %v", err))
	}
}

func setHTML(ctx *fasthttp.RequestCtx, policy string) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	ctx.SetContentType("text/html; charset=utf-8")
}

// statusPage is the data of the status page.
type statusPage struct {
	Status
	Asked         string    // the request that is asked about; "" if none is
	Forecast      *Forecast // nil if none is asked about
	HasPlayground bool
}

// MaxRows bounds the rows of resources and operations: published documents have more than a thousand.
func (*statusPage) MaxRows() int { return 200 }

// Explain is the address of a page that explains a refusal.
func (s *statusPage) Explain(r *Refusal) string {
	if s.HasPlayground {
		return r.link()
	}
	return "/?request=" + url.QueryEscape(r.Method+" "+r.Path)
}

// AskedLink is the address of the playground with the request that is asked about.
func (s *statusPage) AskedLink() string {
	method, path, _ := strings.Cut(s.Asked, " ")
	return inForceLink(method, path)
}

// RolloutOperations are the operations whose descriptions are not enforced everywhere.
func (s *statusPage) RolloutOperations() (all []*RolloutOperation) {
	for i := range s.Rollouts {
		for j := range s.Rollouts[i].Operations {
			all = append(all, &s.Rollouts[i].Operations[j])
		}
	}
	return all
}

// varyingRead is a resource whose objects get no ETags.
type varyingRead struct{ Resource, Upstream, Because string }

// VaryingReads are those resources of all upstreams.
func (s *statusPage) VaryingReads() (all []varyingRead) {
	for i := range s.Upstreams {
		for _, r := range s.Upstreams[i].VaryingReads() {
			all = append(all, varyingRead{r, s.Upstreams[i].Name, Varying})
		}
	}
	return all
}
