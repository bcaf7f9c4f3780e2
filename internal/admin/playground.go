package admin

import (
	"context"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/pages"
	"github.com/admission-gateway/gateway/internal/peek"
	"github.com/admission-gateway/gateway/internal/status"
)

// The paths of the playground.
const (
	playgroundPage     = "/playground"
	playgroundQuestion = "/playground/ask"
	playgroundExamples = "/playground/examples"
)

const (
	// maxQuestionBytes bounds a question. What it costs to compile its policies goes with it.
	maxQuestionBytes = 128 << 10
	// lookInterval is how often a client that waits for an answer is looked for.
	lookInterval = 100 * time.Millisecond
)

// A Playground explains requests that operators make up.
type Playground struct {
	// Ask explains the question in a JSON text. The error is a [*status.Error].
	Ask func(ctx context.Context, question []byte) (*explanation.Explanation, error)
	// Examples returns questions to begin with. They are written as JSON.
	Examples func() (any, error)
}

// addPlayground adds the pages of the playground.
func (p *handlers) addPlayground(o *Playground) {
	p.playground = o
	p.private[playgroundPage] = func(ctx *fasthttp.RequestCtx) {
		if p.mayPlay(ctx) {
			writeHTML(ctx, pages.Playground, nil, playgroundPolicy)
		}
	}
	p.private[playgroundExamples] = func(ctx *fasthttp.RequestCtx) {
		if !p.mayPlay(ctx) {
			return
		}
		examples, err := o.Examples()
		if err != nil {
			writeError(ctx, status.Internal("the examples cannot be read: %v", err))
			return
		}
		writeJSON(ctx, examples)
	}
}

// mayPlay reports whether the playground is for who asks. Without a token it is for this machine alone.
func (p *handlers) mayPlay(ctx *fasthttp.RequestCtx) bool {
	if p.token != nil || p.isLocal.Load() && ctx.RemoteIP().IsLoopback() {
		return true
	}
	writeError(ctx, status.Coded(http.StatusForbidden, "the playground needs the token of `admin.tokenFile`, or an admin listener on a loopback address"))
	return false
}

// isLoopback reports whether a listener is on a loopback address.
func isLoopback(l net.Listener) bool {
	tcp, ok := l.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// questionLimit has a question be longer than other bodies, if it may be asked.
func (p *handlers) questionLimit(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	isAllowed := p.token == nil && p.isLocal.Load() || p.token != nil && shows(h, p.token())
	if p.playground != nil && h.IsPost() && string(h.RequestURI()) == playgroundQuestion && isAllowed {
		c.MaxRequestBodySize = maxQuestionBytes
	}
	return c
}

// ask answers a question.
func (p *handlers) ask(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	switch contentType, _, err := mime.ParseMediaType(string(ctx.Request.Header.ContentType())); {
	case !p.mayPlay(ctx):
		return
	case !ctx.IsPost():
		h.Set("Allow", "POST")
		writeError(ctx, status.Coded(http.StatusMethodNotAllowed,
			fmt.Sprintf("%s does not support %s: send the question by POST", playgroundQuestion, ctx.Method())))
		return
	case isFromElsewhere(&ctx.Request.Header):
		writeError(ctx, status.Coded(http.StatusForbidden, "a page of another origin must not ask the playground"))
		return
	case err != nil || contentType != "application/json":
		// Pages of other origins can send this type only after a question that this server answers in no case.
		writeError(ctx, status.UnsupportedMediaType("application/json"))
		return
	}
	asked, stop := whileConnected(ctx)
	defer stop()
	explained, err := p.playground.Ask(asked, ctx.Request.Body())
	if err != nil {
		writeError(ctx, status.From(err))
		return
	}
	if strings.Contains(string(ctx.Request.Header.Peek("Accept")), "text/html") {
		fragment, err := explanation.Fragment(explained)
		if err != nil {
			writeError(ctx, status.Internal("cannot write the explanation: %v", err))
			return
		}
		setHTML(ctx, statusPolicy)
		ctx.SetBodyString(fragment)
		return
	}
	contentType, body := explanation.Write(explained, explanation.JSON)
	ctx.SetContentType(contentType)
	ctx.SetBody(body)
}

// isFromElsewhere reports whether a browser sends the request for a page of another origin. It may have the credentials
// of its user for this server all the same.
func isFromElsewhere(h *fasthttp.RequestHeader) bool {
	for _, site := range h.PeekAll("Sec-Fetch-Site") {
		if s := string(site); s != "same-origin" && s != "none" {
			return true
		}
	}
	for _, origin := range h.PeekAll("Origin") {
		if u, err := url.Parse(string(origin)); err != nil || !strings.EqualFold(u.Host, string(h.Host())) {
			return true
		}
	}
	return false
}

// whileConnected returns a context that ends when the client has gone, or when stop is called, which has to be.
func whileConnected(of *fasthttp.RequestCtx) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	conn, ended := of.Conn(), make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(lookInterval)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if peek.Gone(conn) {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(); <-ended }
}
