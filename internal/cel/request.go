package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A Request holds what the variable request shows of a request. Its strings must
// stay valid until the evaluations are over.
type Request struct {
	// Group, Version and Resource are of the resource in the path, which expressions read as
	// requestResource.
	Group, Version, Resource string
	// Kind is the kind of the objects, which expressions read as requestKind. That of a subresource
	// may be of another group.
	Kind schema.GroupVersionKind
	// Matched is the resource that the object was converted to for the policy, as expressions read
	// it in kind and resource; nil if it is that in the path.
	Matched         *Matched
	Subresource     string
	Namespace, Name string
	Operation       string // CREATE, UPDATE, DELETE or CONNECT
	DryRun          bool
	User            User

	// Options are the options of the operation, such as DeleteOptions; nil if there are none.
	Options Options

	// What only rate limits see.
	Verb          string // get, list, watch, create, update, patch, delete, deletecollection
	Path          string // the raw path without the query
	ClientAddress string
	Headers       Headers
	Query         string // as it came
	BodyBytes     int64  // how long the body is, or may become
}

// Options are the options of an operation, made when an expression first reads them.
type Options interface {
	// Options returns them; an invalid node if there are none.
	Options() (document.Node, error)
}

// GivenOptions are options that are made already.
type GivenOptions document.Node

// Options implements Options.
func (o GivenOptions) Options() (document.Node, error) { return document.Node(o), nil }

// Matched is a resource that an object was converted to, and the kind that the object then is of.
type Matched struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
}

// matched returns what kind and resource show.
func (r *Request) matched() Matched {
	if r.Matched != nil {
		return *r.Matched
	}
	return Matched{r.Kind, schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}}
}

// User is the sender of a request.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Headers are the headers of a request. Names are lower case.
type Headers interface {
	// Get is the value of a header, several joined by a comma and a blank.
	Get(name string) (value string, ok bool)
	// Each calls f for each header until f returns false.
	Each(f func(name, value string) bool)
}

func always(name string, get func(*Request) string) value.Field {
	return of(name, func(f *value.Arena, r *Request) ref.Val { return f.NewText(get(r)) })
}

func unlessEmpty(name string, get func(*Request) string) value.Field {
	return of(name, func(f *value.Arena, r *Request) ref.Val {
		s := get(r)
		if s == "" {
			return nil
		}
		return f.NewText(s)
	})
}

// of is a member that is made of a Request.
func of(name string, get func(*value.Arena, *Request) ref.Val) value.Field {
	return value.Field{Name: name, Get: func(f *value.Arena, r any) ref.Val { return get(f, r.(*Request)) }}
}

func part(name string, fields []value.Field) value.Field {
	return value.Field{Name: name, Get: func(f *value.Arena, r any) ref.Val { return f.NewRecord(r, fields) }}
}

// The fields are present or absent as in an AdmissionRequest that was encoded and decoded: what is
// empty is left out if its JSON tag says omitempty.
var (
	kindFields = []value.Field{
		always("group", func(r *Request) string { return r.Kind.Group }),
		always("version", func(r *Request) string { return r.Kind.Version }),
		always("kind", func(r *Request) string { return r.Kind.Kind }),
	}
	resourceFields = []value.Field{
		always("group", func(r *Request) string { return r.Group }),
		always("version", func(r *Request) string { return r.Version }),
		always("resource", func(r *Request) string { return r.Resource }),
	}
	matchedKindFields = []value.Field{
		always("group", func(r *Request) string { return r.matched().Kind.Group }),
		always("version", func(r *Request) string { return r.matched().Kind.Version }),
		always("kind", func(r *Request) string { return r.matched().Kind.Kind }),
	}
	matchedResourceFields = []value.Field{
		always("group", func(r *Request) string { return r.matched().Resource.Group }),
		always("version", func(r *Request) string { return r.matched().Resource.Version }),
		always("resource", func(r *Request) string { return r.matched().Resource.Resource }),
	}
	userFields = []value.Field{
		unlessEmpty("username", func(r *Request) string { return r.User.Name }),
		unlessEmpty("uid", func(r *Request) string { return r.User.UID }),
		of("groups", func(f *value.Arena, r *Request) ref.Val {
			if len(r.User.Groups) == 0 {
				return nil
			}
			return types.NewStringList(types.DefaultTypeAdapter, r.User.Groups)
		}),
		of("extra", func(f *value.Arena, r *Request) ref.Val {
			if len(r.User.Extra) == 0 {
				return nil
			}
			return types.NewDynamicMap(types.DefaultTypeAdapter, r.User.Extra)
		}),
	}
	requestFields = []value.Field{
		part("kind", matchedKindFields),
		part("resource", matchedResourceFields),
		unlessEmpty("subResource", func(r *Request) string { return r.Subresource }),
		part("requestKind", kindFields),
		part("requestResource", resourceFields),
		unlessEmpty("requestSubResource", func(r *Request) string { return r.Subresource }),
		unlessEmpty("name", func(r *Request) string { return r.Name }),
		unlessEmpty("namespace", func(r *Request) string { return r.Namespace }),
		always("operation", func(r *Request) string { return r.Operation }),
		part("userInfo", userFields),
		of("dryRun", func(_ *value.Arena, r *Request) ref.Val { return types.Bool(r.DryRun) }),
		of("options", func(f *value.Arena, r *Request) ref.Val {
			if r.Options == nil {
				return types.NullValue
			}
			options, err := r.Options.Options()
			switch {
			case err != nil:
				return types.NewErr("the options of the request cannot be read: %v", err)
			case !options.Valid():
				return types.NullValue
			}
			return f.Value(options, nil)
		}),
	}
	// limitedFields are of rate limits. All are always present, so that an expression needs no guards.
	limitedFields = []value.Field{
		always("verb", func(r *Request) string { return r.Verb }),
		always("path", func(r *Request) string { return r.Path }),
		part("resource", resourceFields),
		always("subResource", func(r *Request) string { return r.Subresource }),
		always("namespace", func(r *Request) string { return r.Namespace }),
		always("name", func(r *Request) string { return r.Name }),
		always("clientAddress", func(r *Request) string { return r.ClientAddress }),
		part("client", clientFields),
		of("headers", func(f *value.Arena, r *Request) ref.Val { return &headers{frame: f, of: r.Headers} }),
		of("query", func(f *value.Arena, r *Request) ref.Val { return &headers{frame: f, of: query(r.Query)} }),
		of("bodyBytes", func(_ *value.Arena, r *Request) ref.Val { return types.Int(r.BodyBytes) }),
		part("userInfo", limitedUserFields),
	}
	clientFields = []value.Field{
		always("address", func(r *Request) string { return r.ClientAddress }),
	}
	limitedUserFields = []value.Field{
		always("username", func(r *Request) string { return r.User.Name }),
		always("uid", func(r *Request) string { return r.User.UID }),
		of("groups", func(f *value.Arena, r *Request) ref.Val {
			return types.NewStringList(types.DefaultTypeAdapter, r.User.Groups)
		}),
		of("extra", func(f *value.Arena, r *Request) ref.Val {
			return types.NewDynamicMap(types.DefaultTypeAdapter, r.User.Extra)
		}),
	}
)

// headers is the headers of a request as a CEL map.
type headers struct {
	frame *value.Arena
	of    Headers
}

var _ traits.Mapper = (*headers)(nil)

// Find implements traits.Mapper.
func (h *headers) Find(key ref.Val) (ref.Val, bool) {
	h.frame.Charge(1)
	if q, ok := h.of.(query); ok {
		h.frame.Charge(int64(len(q)) / value.BytesPerUnit) // which is read to its end
	}
	name, ok := key.(types.String)
	if !ok || h.of == nil {
		return nil, false
	}
	value, ok := h.of.Get(string(name))
	if !ok {
		return nil, false
	}
	return h.frame.NewText(value), true
}

// Get implements traits.Indexer.
func (h *headers) Get(key ref.Val) ref.Val {
	v, found := h.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (h *headers) Contains(key ref.Val) ref.Val {
	_, found := h.Find(key)
	return types.Bool(found)
}

func (h *headers) names() []string {
	var names []string
	if h.of != nil {
		h.of.Each(func(name, _ string) bool {
			h.frame.Charge(1)
			names = append(names, name)
			return true
		})
	}
	return names
}

// Size implements traits.Sizer.
func (h *headers) Size() ref.Val { return types.Int(len(h.names())) }

// InOrder implements value.Ordered.
func (h *headers) InOrder() {}

// Iterator implements traits.Iterable.
func (h *headers) Iterator() traits.Iterator { return &value.NameIterator{Names: h.names()} }

// Equal implements ref.Val.
func (h *headers) Equal(other ref.Val) ref.Val { return value.EqualMaps(h, other) }

// Type implements ref.Val.
func (h *headers) Type() ref.Type { return types.MapType }

func (h *headers) CountsItself() {}

// Value implements ref.Val.
func (h *headers) Value() any { return types.NoSuchOverloadErr() }

// ConvertToType implements ref.Val.
func (h *headers) ConvertToType(t ref.Type) ref.Val { return value.ConvertMap(h, t) }

// ConvertToNative implements ref.Val.
func (h *headers) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from 'headers' to '%s'", t)
}
