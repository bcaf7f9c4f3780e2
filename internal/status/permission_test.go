package status

import (
	"reflect"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// TestMayNot: the answers are kube-apiserver's own.
func TestMayNot(t *testing.T) {
	for _, about := range []authorizer.AttributesRecord{
		{ResourceRequest: true, Verb: "create", APIGroup: "apps", Resource: "deployments", Namespace: "team-a"},
		{ResourceRequest: true, Verb: "update", APIGroup: "apps", Resource: "deployments", Subresource: "scale",
			Namespace: "team-a", Name: "web"},
		{ResourceRequest: true, Verb: "delete", Resource: "namespaces", Namespace: "team-a", Name: "team-a"},
		{ResourceRequest: true, Verb: "deletecollection", APIGroup: "rbac.authorization.k8s.io",
			Resource: "clusterroles"},
		{ResourceRequest: true, Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "a&b", Name: "<p>"},
		{Verb: "post", Path: "/metrics?<>"},
	} {
		for _, name := range []string{"alice", "system:anonymous", `<"jane & joe">`} {
			for _, reason := range []string{"", "no role", "RBAC: <none> & so on"} {
				about.User = &user.DefaultInfo{Name: name}
				want := of(responsewriters.ForbiddenStatusError(&about, reason))
				if got := MayNot(name, &about, reason); !reflect.DeepEqual(got, want) {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			}
		}
	}
	about := authorizer.AttributesRecord{ResourceRequest: true, Verb: "create", Resource: "pods"}
	if got, want := MayNot("", about, "").Error(), `pods is forbidden: the user cannot create resource "pods" in API group "" at the cluster scope`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
