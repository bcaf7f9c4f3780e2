package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/admission-gateway/gateway/internal/pages"
	"github.com/admission-gateway/gateway/internal/status"
)

// handlers are those of the listener by path.
type handlers struct {
	named hosts
	// health is no secret, and load balancers ask for it by names of their own. Below the path of a
	// page each of its checks has one.
	health map[string]checks
	// private pages are for requests that use a name of the listener.
	private map[string]fasthttp.RequestHandler
	// token returns the token that they must have; nil if there is none.
	token func() string
	// playground answers questions; nil if there is none. isLocal says that the listener is on a loopback address.
	playground *Playground
	isLocal    atomic.Bool
	// all names the pages, for requests for another one.
	all string
}

func newHandlers(o Options, ready []Check) *handlers {
	p := &handlers{
		named:   newHosts(o.Hosts),
		health:  map[string]checks{"/livez": {"livez", o.Live}, "/readyz": {"readyz", ready}},
		private: map[string]fasthttp.RequestHandler{},
		token:   o.Token,
	}
	if o.Metrics != nil {
		p.private["/metrics"] = fasthttpadaptor.NewFastHTTPHandler(o.Metrics)
	}
	if o.Policies != nil {
		p.private["/policies"] = func(ctx *fasthttp.RequestCtx) {
			if request := ctx.QueryArgs().Peek("request"); request != nil && o.Forecast != nil {
				writeJSON(ctx, o.Forecast(string(request)))
				return
			}
			writeJSON(ctx, o.Policies())
		}
	}
	if o.Upstreams != nil {
		p.private["/upstreams"] = func(ctx *fasthttp.RequestCtx) { writeJSON(ctx, o.Upstreams()) }
	}
	if o.Status != nil {
		whole := func() Status {
			s := o.Status()
			s.Ready = p.health["/readyz"].report()
			return s
		}
		p.private["/status"] = func(ctx *fasthttp.RequestCtx) { writeJSON(ctx, whole()) }
		p.private["/"] = func(ctx *fasthttp.RequestCtx) {
			s := statusPage{Status: whole(), Asked: string(ctx.QueryArgs().Peek("request")),
				HasPlayground: o.Playground != nil}
			if s.Asked != "" && o.Forecast != nil {
				f := o.Forecast(s.Asked)
				s.Forecast = &f
			}
			writeHTML(ctx, pages.Status, &s, statusPolicy)
		}
	}
	if o.Playground != nil {
		p.addPlayground(o.Playground)
	}
	if o.Profiling {
		p.private[profiles] = profile
	}
	paths := append(slices.Sorted(maps.Keys(p.private)), slices.Sorted(maps.Keys(p.health))...)
	p.all = strings.Join(paths[:len(paths)-1], ", ") + " and " + paths[len(paths)-1]
	return p
}

// handle answers one request. fasthttp does not recover: a panic of a page would end the process.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a request made the admin listener panic", "panic", p, "stack", string(debug.Stack()))
			ctx.Response.Reset()
			writeError(ctx, status.Internal("the admin listener failed to answer: see the gateway's log"))
			ctx.SetConnectionClose()
		}
	}()
	s.handlers.serve(ctx)
}

func (p *handlers) serve(ctx *fasthttp.RequestCtx) {
	asked(ctx)
	path := string(ctx.Path())
	name := ""
	all, found := p.health[path]
	if i := strings.LastIndexByte(path, '/'); !found && i < len(path)-1 {
		all, found = p.health[path[:i]]
		name = path[i+1:]
	}
	if found {
		onlyGet(ctx, func(ctx *fasthttp.RequestCtx) { all.serve(ctx, name) })
		return
	}
	if host, ok := p.named.ask(ctx); !ok {
		writeError(ctx, misdirected(host))
		return
	}
	if p.token != nil && !shows(&ctx.Request.Header, p.token()) {
		unauthorized(ctx)
		return
	}
	if !keepPlace(ctx) {
		ctx.SetConnectionClose()
		writeError(ctx, status.ServiceUnavailable("the admin listener answers as many requests as it may", 1))
		return
	}
	if path == playgroundQuestion && p.playground != nil {
		p.ask(ctx)
		return
	}
	page := p.private[path]
	if page == nil && isProfile(path) {
		page = p.private[profiles]
	}
	if page == nil {
		writeError(ctx, status.NoSuchPath("the admin listener has no %s: it serves %s", path, p.all))
		return
	}
	onlyGet(ctx, page)
}

// onlyGet answers GET and HEAD with the page; fasthttp leaves out the body of an answer to HEAD.
func onlyGet(ctx *fasthttp.RequestCtx, page fasthttp.RequestHandler) {
	h := &ctx.Response.Header
	if !ctx.IsGet() && !ctx.IsHead() {
		h.Set("Allow", "GET, HEAD")
		writeError(ctx, status.Coded(http.StatusMethodNotAllowed,
			fmt.Sprintf("%s does not support %s: the admin listener is for reading", ctx.Path(), ctx.Method())))
		return
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	page(ctx)
}

// writeJSON answers with a page for people and programs alike.
func writeJSON(ctx *fasthttp.RequestCtx, page any) {
	body, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		writeError(ctx, status.Internal("cannot write the answer: %v", err))
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(append(body, '\n'))
}
