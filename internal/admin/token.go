package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/status"
)

// shows reports whether a request shows the token: as a bearer token, or, as browsers can, as the
// password of a user of any name. How long the comparison takes says nothing about the token.
func shows(h *fasthttp.RequestHeader, token string) bool {
	if token == "" {
		return false
	}
	scheme, rest, _ := strings.Cut(string(h.Peek("Authorization")), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return same(strings.TrimLeft(rest, " "), token)
	case strings.EqualFold(scheme, "Basic"):
		text, err := base64.StdEncoding.DecodeString(strings.TrimLeft(rest, " "))
		_, password, found := strings.Cut(string(text), ":")
		return err == nil && found && same(password, token)
	}
	return false
}

func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// unauthorized asks for the token.
func unauthorized(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Add("WWW-Authenticate", `Bearer realm="admin"`)
	ctx.Response.Header.Add("WWW-Authenticate", `Basic realm="admin", charset="UTF-8"`)
	writeError(ctx, status.Coded(http.StatusUnauthorized, "the admin listener asks for the token of `admin.tokenFile`: /livez and /readyz alone need none"))
}
