package cel

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
)

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
