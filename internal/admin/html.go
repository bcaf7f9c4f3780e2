package admin

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/status"
)

//go:embed status.css
var style string

//go:embed status.html
var pageText string

// page is the status page for people. It has no script, and takes its one style from itself.
var page = template.Must(template.New("status").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(style) },
	"since": func(seconds int64) string { return (time.Duration(seconds) * time.Second).String() },
	"at":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}).Parse(pageText))

// pagePolicy lets a browser load nothing, and run nothing, that is not on the page itself.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// shown is the data of the page.
type shown struct {
	Status
	Asked    string    // the request that is asked about; "" if none is
	Forecast *Forecast // nil if none is asked about
}

// writePage answers with the page.
func writePage(ctx *fasthttp.RequestCtx, s *shown) {
	var b bytes.Buffer
	if err := page.Execute(&b, s); err != nil {
		writeError(ctx, status.Internal("cannot write the page: %v", err))
		return
	}
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBody(b.Bytes())
}
