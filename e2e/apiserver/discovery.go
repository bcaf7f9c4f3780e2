package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// withRootDiscovery answers /api and /apis, which the aggregator of kube-apiserver serves, from the resources that
// there are.
func withRootDiscovery(handler http.Handler, c *genericapiserver.Config) http.Handler {
	chain := genericapiserver.DefaultBuildHandlerChain(handler, c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimSuffix(r.URL.Path, "/") {
		case "/api":
			writeJSON(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{}})
		case "/apis":
			writeJSON(w, groups(chain))
		default:
			chain.ServeHTTP(w, r)
		}
	})
}

func groups(chain http.Handler) metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	var definitions apiextensionsv1.CustomResourceDefinitionList
	get(chain, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definitions)
	seen := map[string]bool{}
	add := func(name string) {
		var group metav1.APIGroup
		if seen[name] || !get(chain, "/apis/"+name, &group) {
			return
		}
		seen[name] = true
		group.TypeMeta = metav1.TypeMeta{}
		list.Groups = append(list.Groups, group)
	}
	add(apiextensionsv1.GroupName)
	for _, d := range definitions.Items {
		add(d.Spec.Group)
	}
	return list
}

// get reads an object of the server itself.
func get(chain http.Handler, path string, into any) bool {
	answer := httptest.NewRecorder()
	chain.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code == http.StatusOK && json.Unmarshal(answer.Body.Bytes(), into) == nil
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client that has gone needs no answer
}
