package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/status"
)

// hosts are the names by which the listener may be addressed, in lower case. A page of another origin can point
// a name of its own at this listener's address (DNS rebinding), and then reads what the listener answers as if
// it were its own. IP literals cannot be pointed anywhere, nor can localhost. Names below localhost, and localhost with
// a dot at its end, are for DNS to say in some browsers and resolvers.
type hosts map[string]bool

func newHosts(names []string) hosts {
	h := hosts{}
	for _, name := range names {
		h[withoutDot(hostName(name))] = true
	}
	return h
}

// hostName is the name of a Host header without its port and capital letters.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(host)
}

// withoutDot is a name without the dot at its end, which is the same name.
func withoutDot(name string) string { return strings.TrimSuffix(name, ".") }

// has reports whether the Host header of a request names this listener.
func (h hosts) has(host string) bool {
	name := hostName(host)
	if name == "localhost" || h[withoutDot(name)] {
		return true
	}
	if bracketed := strings.TrimPrefix(name, "["); len(bracketed) < len(name) {
		name = strings.TrimSuffix(bracketed, "]")
		if len(name) == len(bracketed) {
			return false
		}
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

// ask reports whether a request names this listener, and the name if it is not. A target may have a
// host beside the header's. fasthttp goes by the target's, browsers write the header: both must
// name the listener.
func (h hosts) ask(ctx *fasthttp.RequestCtx) (string, bool) {
	for _, host := range []string{string(ctx.Request.Header.Host()), string(ctx.Host())} {
		if !h.has(host) {
			return host, false
		}
	}
	return "", true
}

// misdirected says that this server does not answer for that host (421); 403 would send operators to
// look for missing rights.
func misdirected(host string) *status.Error {
	return status.Coded(http.StatusMisdirectedRequest, "the admin listener does not answer for the host '"+
		quote.Clip(host, quote.MaxHost)+
		"': ask it by an IP address or as localhost, or name the host in `admin.hosts` of the configuration")
}
