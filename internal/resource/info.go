package resource

import (
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FieldValidation says what happens to unknown and duplicate fields.
type FieldValidation uint8

const (
	// FieldValidationUnset: the request or the file does not say.
	FieldValidationUnset FieldValidation = iota
	// FieldValidationIgnore drops unknown fields silently.
	FieldValidationIgnore
	// FieldValidationWarn drops unknown fields and answers with warnings.
	FieldValidationWarn
	// FieldValidationStrict refuses objects with unknown fields.
	FieldValidationStrict
)

// String returns the value as the query and policy files write it; Unset is "".
func (f FieldValidation) String() string {
	switch f {
	case FieldValidationIgnore:
		return "Ignore"
	case FieldValidationWarn:
		return "Warn"
	case FieldValidationStrict:
		return "Strict"
	}
	return ""
}

// Options are the parameters of the query for the gateway itself, read once. Info.Param
// gives every other parameter.
type Options struct {
	FieldValidation FieldValidation
	// DryRun is true for dryRun=All, the only value that there is.
	DryRun bool
	// Watch is true for watch=true on a collection or an item; only on a
	// collection is the verb watch too, as in Kubernetes.
	Watch bool
	// Timeout is the client's own deadline (timeout=10s); 0 means none.
	Timeout time.Duration
}

// Info holds what method and target say. Its strings share the target's bytes
// and live as long as those; the exception is a Name that was percent-encoded.
type Info struct {
	Verb Verb
	// OtherMethod is the method of a request for no resource, if no verb has it. Then Verb is VerbOther.
	OtherMethod string
	// IsResource is false for discovery, health and all other paths that are
	// neither below a Kubernetes version nor in a path template. Then only
	// Verb, Path and Query are set.
	IsResource bool
	// IsUndescribed is true for a request to an ordinary API that no file describes. IsOtherMethod says that files
	// describe its path, for other methods.
	IsUndescribed, IsOtherMethod bool
	// Documented is the operation of a document that the request asks for, if that is no verb of a resource; nil for
	// all others. IsUndescribed is true then if the document has no check for the request.
	Documented *Documented
	// IsRedirected says that the path is a described one but for the slash at its end, and is to be answered with that.
	IsRedirected bool
	// APIPrefix is "api" or "apis", and "" for a path template.
	APIPrefix string

	Group, Version, Resource, Subresource, Namespace, Name string

	// APIVersion returns an object's apiVersion according to the URL: the group
	// and version. A subresource may carry objects of another one.
	APIVersion string

	// Template is the path template of the resource, and Route the template as its author wrote it; "" if the path is
	// in no template.
	Template, Route string

	// Path and Query are the two parts of the target as they came; Query has
	// no question mark.
	Path, Query string

	Options Options

	// Connect is set for subresources that lead to somewhere else, such as a pod's exec: whatever the verb, no stored
	// object is read or written, and the request is admitted as CONNECT.
	Connect bool

	// RouteRef is the route by which the request comes; nil if it comes by none, as a question about a resource.
	Place *RouteRef

	// Prefilter names policies that do not apply to the request, beyond what the rest of Info
	// shows; nil if none.
	Prefilter Prefilter
}

// A Prefilter knows of policies that they are not about a request, before anything stored is read for it.
type Prefilter interface {
	// IsFilteredOut reports whether a policy is certainly not about an operation.
	IsFilteredOut(policy any, i *Info, operation AdmissionOperation) bool
}

// IsWrite reports whether the verb changes stored objects.
func (i *Info) IsWrite() bool { return i.IsResource && !i.Connect && i.Verb.Operation() != 0 }

// IsObject reports whether the request addresses an object that may be stored, or a part of it.
func (i *Info) IsObject() bool { return i.IsResource && i.Verb.OfObject() }

// HasBody reports whether the verb's requests carry an object or a patch.
func (i *Info) HasBody() bool { return i.IsResource && !i.Connect && i.Verb.HasBody() }

// VerbName returns the verb for expressions, logs and audit events. A path that is no resource has its method in
// lower case, whatever it is.
func (i *Info) VerbName() string {
	if i.OtherMethod != "" {
		return strings.ToLower(i.OtherMethod)
	}
	return i.Verb.String()
}

// ObjectNamespace returns the metadata.namespace that the URL names. It is the Namespace but for
// namespaces themselves, which are in none.
func (i *Info) ObjectNamespace() string {
	if i.IsNamespaces() && i.APIPrefix != "" {
		return ""
	}
	return i.Namespace
}

// IsNamespaces reports whether the request is one about Namespaces. Other groups may have resources
// of the same name.
func (i *Info) IsNamespaces() bool { return i.Resource == namespaces && i.Group == "" }

// HasNamespaceSegments reports whether the path has a namespace before its resource. In /namespaces/NAME
// both are the same, whatever the group.
func (i *Info) HasNamespaceSegments() bool {
	switch {
	case i.Namespace == "":
		return false
	case i.Resource != namespaces:
		return true
	}
	return strings.Contains(i.Path, "/namespaces/"+i.Namespace+"/namespaces")
}

// GroupResource returns the group and resource.
func (i *Info) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: i.Group, Resource: i.Resource}
}

// GroupVersionResource returns the group, version and resource.
func (i *Info) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Resource}
}

// Param returns the decoded value of the first query parameter with the key,
// and whether there is one. On a resource the parameters that Kubernetes knows
// occur at most once.
func (i *Info) Param(key string) (string, bool) {
	for rest := i.Query; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		k, v, _ := strings.Cut(pair, "=")
		if k != key {
			continue
		}
		if strings.ContainsAny(v, "%+") {
			if decoded, err := url.QueryUnescape(v); err == nil {
				v = decoded
			}
		}
		return v, true
	}
	return "", false
}
