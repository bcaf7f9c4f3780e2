package access

import (
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/admission-gateway/gateway/internal/status"
)

// infos reads requests as the API server does.
var infos = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// InfoOf returns what the API server authorizes of a request.
func InfoOf(method string, at *url.URL) (*request.RequestInfo, error) {
	return infos.NewRequestInfo(&http.Request{Method: method, URL: at})
}

// RuleOf returns the rule that a role needs for a request; false if it is not for a resource.
func RuleOf(method, target string) (status.AccessRule, bool) {
	at, err := url.ParseRequestURI(target)
	if err != nil {
		return status.AccessRule{}, false
	}
	i, err := InfoOf(method, at)
	if err != nil || !i.IsResourceRequest {
		return status.AccessRule{}, false
	}
	return status.AccessRule{Group: i.APIGroup, Resource: i.Resource, Subresource: i.Subresource, Verb: i.Verb}, true
}

// Lacking returns what is to be added to the message about a request that the server did not let the gateway's own
// account make.
func Lacking(code int, method, target string) string {
	rule, is := RuleOf(method, target)
	if code != http.StatusForbidden || !is {
		return ""
	}
	return ": add " + rule.String() + " to the role of the gateway's own account"
}
