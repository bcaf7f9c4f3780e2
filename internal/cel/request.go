package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/document"
)

// A Request is what the variable request shows of a request. Its strings must
// stay valid until the evaluations are over.
type Request struct {
	// Group, Version, Kind and Resource are of the resource in the path, which
	// expressions read as requestKind and requestResource.
	Group, Version, Kind, Resource string
	// Matched is the resource that the object was converted to for the policy, as
	// expressions read it in kind and resource; nil where it is that in the path.
	Matched         *Matched
	Subresource     string
	Namespace, Name string
	Operation       string // CREATE, UPDATE, DELETE or CONNECT
	DryRun          bool
	User            User

	// Options are the options of the operation, such as DeleteOptions; invalid
	// where there are none.
	Options document.Node

	// What only rate limits see.
	Verb          string // get, list, watch, create, update, patch, delete, deletecollection
	Path          string // the raw path without the query
	ClientAddress string
	Headers       Headers
	Query         string // as it came
	BodyBytes     int64  // how long the body is, or may become
}

// Matched is a resource that an object was converted to.
type Matched struct {
	Group, Version, Kind, Resource string
}

// matched is what kind and resource show.
func (r *Request) matched() Matched {
	if r.Matched != nil {
		return *r.Matched
	}
	return Matched{r.Group, r.Version, r.Kind, r.Resource}
}

// User is who sends a request.
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

// A recordField is a member of a record. get returns nil where it is absent.
type recordField struct {
	name string
	get  func(*Frame, *Request) ref.Val
}

func always(get func(*Request) string) func(*Frame, *Request) ref.Val {
	return func(f *Frame, r *Request) ref.Val { return f.newText(get(r)) }
}

func unlessEmpty(get func(*Request) string) func(*Frame, *Request) ref.Val {
	return func(f *Frame, r *Request) ref.Val {
		s := get(r)
		if s == "" {
			return nil
		}
		return f.newText(s)
	}
}

func part(fields []recordField) func(*Frame, *Request) ref.Val {
	return func(f *Frame, r *Request) ref.Val { return f.newRecord(r, fields) }
}

// newText is a string that counts like one of a document.
func (f *Frame) newText(s string) ref.Val {
	f.charge(int64(len(s)) / bytesPerUnit)
	return f.newString(s)
}

// The fields are present or absent as in an AdmissionRequest that was encoded and decoded: what is empty is left out where
// its JSON tag says omitempty.
var (
	kindFields = []recordField{
		{"group", always(func(r *Request) string { return r.Group })},
		{"version", always(func(r *Request) string { return r.Version })},
		{"kind", always(func(r *Request) string { return r.Kind })},
	}
	resourceFields = []recordField{
		{"group", always(func(r *Request) string { return r.Group })},
		{"version", always(func(r *Request) string { return r.Version })},
		{"resource", always(func(r *Request) string { return r.Resource })},
	}
	matchedKindFields = []recordField{
		{"group", always(func(r *Request) string { return r.matched().Group })},
		{"version", always(func(r *Request) string { return r.matched().Version })},
		{"kind", always(func(r *Request) string { return r.matched().Kind })},
	}
	matchedResourceFields = []recordField{
		{"group", always(func(r *Request) string { return r.matched().Group })},
		{"version", always(func(r *Request) string { return r.matched().Version })},
		{"resource", always(func(r *Request) string { return r.matched().Resource })},
	}
	userFields = []recordField{
		{"username", unlessEmpty(func(r *Request) string { return r.User.Name })},
		{"uid", unlessEmpty(func(r *Request) string { return r.User.UID })},
		{"groups", func(f *Frame, r *Request) ref.Val {
			if len(r.User.Groups) == 0 {
				return nil
			}
			return types.NewStringList(types.DefaultTypeAdapter, r.User.Groups)
		}},
		{"extra", func(f *Frame, r *Request) ref.Val {
			if len(r.User.Extra) == 0 {
				return nil
			}
			return types.NewDynamicMap(types.DefaultTypeAdapter, r.User.Extra)
		}},
	}
	requestFields = []recordField{
		{"kind", part(matchedKindFields)},
		{"resource", part(matchedResourceFields)},
		{"subResource", unlessEmpty(func(r *Request) string { return r.Subresource })},
		{"requestKind", part(kindFields)},
		{"requestResource", part(resourceFields)},
		{"requestSubResource", unlessEmpty(func(r *Request) string { return r.Subresource })},
		{"name", unlessEmpty(func(r *Request) string { return r.Name })},
		{"namespace", unlessEmpty(func(r *Request) string { return r.Namespace })},
		{"operation", always(func(r *Request) string { return r.Operation })},
		{"userInfo", part(userFields)},
		{"dryRun", func(_ *Frame, r *Request) ref.Val { return types.Bool(r.DryRun) }},
		{"options", func(f *Frame, r *Request) ref.Val {
			if !r.Options.Valid() {
				return types.NullValue
			}
			return f.value(r.Options, nil)
		}},
	}
	// limitedFields are of rate limits. All are always present, so that an expression needs no guards.
	limitedFields = []recordField{
		{"verb", always(func(r *Request) string { return r.Verb })},
		{"path", always(func(r *Request) string { return r.Path })},
		{"resource", part(resourceFields)},
		{"subResource", always(func(r *Request) string { return r.Subresource })},
		{"namespace", always(func(r *Request) string { return r.Namespace })},
		{"name", always(func(r *Request) string { return r.Name })},
		{"clientAddress", always(func(r *Request) string { return r.ClientAddress })},
		{"client", part(clientFields)},
		{"headers", func(f *Frame, r *Request) ref.Val { return &headers{frame: f, of: r.Headers} }},
		{"query", func(f *Frame, r *Request) ref.Val { return &headers{frame: f, of: query(r.Query)} }},
		{"bodyBytes", func(_ *Frame, r *Request) ref.Val { return types.Int(r.BodyBytes) }},
		{"userInfo", part(limitedUserFields)},
	}
	clientFields = []recordField{
		{"address", always(func(r *Request) string { return r.ClientAddress })},
	}
	limitedUserFields = []recordField{
		{"username", always(func(r *Request) string { return r.User.Name })},
		{"uid", always(func(r *Request) string { return r.User.UID })},
		{"groups", func(f *Frame, r *Request) ref.Val {
			return types.NewStringList(types.DefaultTypeAdapter, r.User.Groups)
		}},
		{"extra", func(f *Frame, r *Request) ref.Val {
			return types.NewDynamicMap(types.DefaultTypeAdapter, r.User.Extra)
		}},
	}
)

// record is a part of a Request as a CEL map.
type record struct {
	frame  *Frame
	of     *Request
	fields []recordField
}

var _ traits.Mapper = (*record)(nil)

func (f *Frame) newRecord(r *Request, fields []recordField) ref.Val {
	rec := f.records.take()
	*rec = record{frame: f, of: r, fields: fields}
	return rec
}

// Find implements traits.Mapper.
func (r *record) Find(key ref.Val) (ref.Val, bool) {
	r.frame.charge(1)
	name, ok := key.(types.String)
	if !ok {
		return types.ValOrErr(key, "unsupported map key type: %T", key), true
	}
	for i := range r.fields {
		if r.fields[i].name == string(name) {
			v := r.fields[i].get(r.frame, r.of)
			return v, v != nil
		}
	}
	return nil, false
}

// Get implements traits.Indexer.
func (r *record) Get(key ref.Val) ref.Val {
	v, found := r.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (r *record) Contains(key ref.Val) ref.Val {
	v, found := r.Find(key)
	if v != nil && types.IsError(v) {
		return v
	}
	return types.Bool(found)
}

func (r *record) names() []string {
	var names []string
	for _, fd := range r.fields {
		if fd.get(r.frame, r.of) != nil {
			names = append(names, fd.name)
		}
	}
	return names
}

// Size implements traits.Sizer.
func (r *record) Size() ref.Val { return types.Int(len(r.names())) }

// Iterator implements traits.Iterable.
func (r *record) Iterator() traits.Iterator { return &nameIterator{names: r.names()} }

// Equal implements ref.Val.
func (r *record) Equal(other ref.Val) ref.Val { return equalMaps(r, other) }

// Type implements ref.Val.
func (r *record) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (r *record) Value() any { return types.NoSuchOverloadErr() }

// ConvertToType implements ref.Val.
func (r *record) ConvertToType(t ref.Type) ref.Val { return convertMap(r, t) }

// ConvertToNative implements ref.Val.
func (r *record) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from 'request' to '%s'", t)
}

// headers is the headers of a request as a CEL map.
type headers struct {
	frame *Frame
	of    Headers
}

var _ traits.Mapper = (*headers)(nil)

// Find implements traits.Mapper.
func (h *headers) Find(key ref.Val) (ref.Val, bool) {
	h.frame.charge(1)
	if q, ok := h.of.(query); ok {
		h.frame.charge(int64(len(q)) / bytesPerUnit) // which is read to its end
	}
	name, ok := key.(types.String)
	if !ok || h.of == nil {
		return nil, false
	}
	value, ok := h.of.Get(string(name))
	if !ok {
		return nil, false
	}
	return h.frame.newText(value), true
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
			h.frame.charge(1)
			names = append(names, name)
			return true
		})
	}
	return names
}

// Size implements traits.Sizer.
func (h *headers) Size() ref.Val { return types.Int(len(h.names())) }

// Iterator implements traits.Iterable.
func (h *headers) Iterator() traits.Iterator { return &nameIterator{names: h.names()} }

// Equal implements ref.Val.
func (h *headers) Equal(other ref.Val) ref.Val { return equalMaps(h, other) }

// Type implements ref.Val.
func (h *headers) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (h *headers) Value() any { return types.NoSuchOverloadErr() }

// ConvertToType implements ref.Val.
func (h *headers) ConvertToType(t ref.Type) ref.Val { return convertMap(h, t) }

// ConvertToNative implements ref.Val.
func (h *headers) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from 'headers' to '%s'", t)
}

func equalMaps(a traits.Mapper, other ref.Val) ref.Val {
	b, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if a.Size() != b.Size() {
		return types.False
	}
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		x, _ := a.Find(key)
		y, found := b.Find(key)
		if !found {
			return types.False
		}
		if eq := x.Equal(y); eq != types.True {
			return eq
		}
	}
	return types.True
}

func convertMap(m ref.Val, t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.MapType, t.TypeName())
}
