package admin

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/admission-gateway/gateway/internal/status"
)

const (
	profiles = "/debug/pprof/"
	// maxProfileSeconds bounds how long a profile or a trace is taken.
	maxProfileSeconds = 60
)

// taken are the profiles that are taken for some time, and what is no profile; the index has all others.
var taken = map[string]fasthttp.RequestHandler{
	"cmdline": fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Cmdline),
	"profile": fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Profile),
	"symbol":  fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Symbol),
	"trace":   fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Trace),
}

var profileIndex = fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index)

// profile answers with a profile of the process.
func profile(ctx *fasthttp.RequestCtx) {
	if args := ctx.QueryArgs(); args.Has("seconds") {
		if n, err := args.GetUint("seconds"); err != nil || n > maxProfileSeconds {
			writeError(ctx, status.Coded(http.StatusBadRequest,
				fmt.Sprintf("seconds must be a whole number up to %d", maxProfileSeconds)))
			return
		}
	}
	if handler := taken[strings.TrimPrefix(string(ctx.Path()), profiles)]; handler != nil {
		handler(ctx)
		return
	}
	profileIndex(ctx)
}

func isProfile(path string) bool { return strings.HasPrefix(path, profiles) }
