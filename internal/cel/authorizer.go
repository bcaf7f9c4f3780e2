package cel

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// SetAuthorizer binds the variables authorizer and authorizer.requestResource,
// about the user and the resource of the request that SetRequest binds; nil means
// that there are none. The context that the authorizer is given says nothing of
// the request: it has to know the request's deadline itself.
func (v *Vars) SetAuthorizer(a authorizer.UnconditionalAuthorizer) { v.authorizer = a }

// authorizerVal is the value of one of the two variables.
func (v *Vars) authorizerVal(name string) (any, bool) {
	if v.authorizer == nil || v.request == nil {
		return nil, false
	}
	who := userInfo(&v.request.User)
	if name == nameRequestResource {
		return library.NewResourceAuthorizerVal(who, v.authorizer, requestResource{v.request}), true
	}
	return library.NewAuthorizerVal(who, v.authorizer), true
}

func userInfo(u *User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// requestResource is the resource in the path of a request.
type requestResource struct{ of *Request }

// GetName implements library.Resource.
func (r requestResource) GetName() string { return r.of.Name }

// GetNamespace implements library.Resource.
func (r requestResource) GetNamespace() string { return r.of.Namespace }

// GetResource implements library.Resource.
func (r requestResource) GetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.of.Group, Version: r.of.Version, Resource: r.of.Resource}
}

// GetSubresource implements library.Resource.
func (r requestResource) GetSubresource() string { return r.of.Subresource }
