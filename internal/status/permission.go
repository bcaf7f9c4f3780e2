package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// MayNot is 403 for a user without a permission, in the words of kube-apiserver. The reason comes
// from the authorizer, and may be empty; so may the name, of a user whose name is not known.
func MayNot(user string, about authorizer.Attributes, reason string) *Error {
	who := "the user"
	if user != "" {
		who = fmt.Sprintf("User %q", user)
	}
	why := sanitizer.Replace(who + " cannot " + accessOf(about))
	if reason != "" {
		why += ": " + reason
	}
	return Forbidden(schema.GroupResource{Group: about.GetAPIGroup(), Resource: about.GetResource()}, about.GetName(),
		why)
}

// sanitizer keeps what clients write from looking like HTML.
var sanitizer = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// accessOf says what is to be done with what.
func accessOf(about authorizer.Attributes) string {
	if !about.IsResourceRequest() {
		return fmt.Sprintf("%s path %q", about.GetVerb(), about.GetPath())
	}
	resource := about.GetResource()
	if about.GetSubresource() != "" {
		resource += "/" + about.GetSubresource()
	}
	where := "at the cluster scope"
	if about.GetNamespace() != "" {
		where = fmt.Sprintf("in the namespace %q", about.GetNamespace())
	}
	return fmt.Sprintf("%s resource %q in API group %q %s", about.GetVerb(), resource, about.GetAPIGroup(), where)
}
