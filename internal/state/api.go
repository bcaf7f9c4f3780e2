package state

import (
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-gateway/gateway/internal/access"
)

// An API is a kind of backend: what it can be asked, and what its answers mean.
type API interface {
	// SelectorQuery returns the query by which the backend lists what a selector selects; it may list more.
	SelectorQuery(selector labels.Selector) string
	// firstPage returns the target of the first page of a collection.
	firstPage(target string) string
	// isEmpty reports whether an answer with the code means a collection without objects.
	isEmpty(code int) bool
	// reviews returns who answers what users may do; nil if the backend does not know.
	reviews(r *access.Reviews) *access.Reviews
}

// APIServer is a Kubernetes API server, OrdinaryAPI any other JSON API.
var (
	APIServer   API = apiServer{}
	OrdinaryAPI API = ordinaryAPI{}
)

type apiServer struct{}

func (apiServer) SelectorQuery(selector labels.Selector) string {
	if selector.Empty() {
		return ""
	}
	return "labelSelector=" + url.QueryEscape(selector.String())
}

func (apiServer) firstPage(target string) string { return withQuery(target, "limit="+pageSize) }

func (apiServer) isEmpty(int) bool { return false }

func (apiServer) reviews(r *access.Reviews) *access.Reviews { return r }

type ordinaryAPI struct{}

func (ordinaryAPI) SelectorQuery(labels.Selector) string { return "" }

func (ordinaryAPI) firstPage(target string) string { return target }

// An ordinary API may not know a collection without objects.
func (ordinaryAPI) isEmpty(code int) bool { return code == http.StatusNotFound }

func (ordinaryAPI) reviews(*access.Reviews) *access.Reviews { return nil }
