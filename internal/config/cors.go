package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/cors/origin"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// CORS says which scripts of other origins may read the answers of a route. They have the names of the Gateway API.
type CORS struct {
	// AllowOrigins are origins such as "https://shop.example.com", or "https://*.example.com" for every host
	// below; "*" is every origin.
	AllowOrigins []string `json:"allowOrigins"`
	// Scripts may use AllowMethods and AllowHeaders; "*" is all.
	AllowMethods []string `json:"allowMethods"`
	AllowHeaders []string `json:"allowHeaders"`
	// ExposeHeaders are the headers of answers that scripts may read, beside the gateway's own.
	ExposeHeaders []string `json:"exposeHeaders"`
	// AllowCredentials lets requests have cookies and other credentials of the browser.
	AllowCredentials bool `json:"allowCredentials"`
	// MaxAgeSeconds is how long a browser need not ask again.
	MaxAgeSeconds Seconds `json:"maxAgeSeconds"`
}

// defaultCORS lets scripts do what ordinary JSON APIs offer. Whose scripts has to be said.
func defaultCORS() CORS {
	return CORS{
		AllowMethods:  []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		AllowHeaders:  []string{"*"},
		MaxAgeSeconds: 600,
	}
}

func (v *validator) cors(path string, c *CORS) {
	if c == nil {
		return
	}
	if len(c.AllowOrigins) == 0 {
		v.check(path+".allowOrigins", "Required value: must have at least one origin, or '*'")
	}
	for i, o := range c.AllowOrigins {
		at := fmt.Sprintf("%s.allowOrigins[%d]", path, i)
		v.check(at, originProblem(o))
		switch {
		case o == "*" && c.AllowCredentials:
			v.check(at, "must not be '*' where `allowCredentials` is true: name the origins")
		case o != "*" && slices.Contains(c.AllowOrigins, "*"):
			v.check(at, fmt.Sprintf("must not be set beside '*', which is '%s' too", o))
		case slices.Contains(c.AllowOrigins[:i], o):
			v.check(at, fmt.Sprintf("must be unique; '%s' is listed twice", o))
		}
	}
	v.names(path+".allowMethods", c.AllowMethods)
	for i, method := range c.AllowMethods {
		v.check(fmt.Sprintf("%s.allowMethods[%d]", path, i), methodProblem(method))
	}
	v.names(path+".allowHeaders", c.AllowHeaders)
	v.names(path+".exposeHeaders", c.ExposeHeaders)
	if i := slices.Index(c.ExposeHeaders, "*"); i >= 0 && c.AllowCredentials {
		v.check(fmt.Sprintf("%s.exposeHeaders[%d]", path, i), "must not be '*' where `allowCredentials` is true: browsers take it for a name then")
	}
	v.within(path+".maxAgeSeconds", c.MaxAgeSeconds, 0, 24*60*60)
}

// ordinaryMethods are the methods that scripts use. An API may have others.
var ordinaryMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions,
}

// methodProblem says that a method is perhaps another one. Browsers compare all letters of a method, and theirs are
// capitals.
func methodProblem(method string) string {
	if method == "*" || slices.Contains(ordinaryMethods, method) {
		return ""
	}
	if upper := strings.ToUpper(method); slices.Contains(ordinaryMethods, upper) {
		return fmt.Sprintf("must be in capital letters, '%s', not '%s': browsers ask for methods so", upper, method)
	}
	if like := manifest.Suggest(method, slices.Values(ordinaryMethods)); like != "" {
		return fmt.Sprintf("must be a method, not '%s'%s", method, like)
	}
	return ""
}

// names checks a list of methods or header names.
func (v *validator) names(path string, names []string) {
	for i, one := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case !isToken(one):
			v.check(at, fmt.Sprintf("must be a name without blanks and commas, not '%s'", one))
		case slices.Contains(names[:i], one):
			v.check(at, fmt.Sprintf("must be unique; '%s' is listed twice", one))
		}
	}
}

// isToken reports whether a text is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// originProblem says what is wrong with an origin, or a pattern of origins.
func originProblem(text string) string {
	if text == "*" {
		return ""
	}
	if _, ok := origin.ParsePattern(text); !ok {
		return fmt.Sprintf("must be an origin as browsers write it, such as 'https://shop.example.com' or 'https://*.example.com' in lower case and "+
			"without the port that the scheme has anyway, or '*', not '%s'", text)
	}
	return ""
}
