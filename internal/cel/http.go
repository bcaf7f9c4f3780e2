package cel

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// HTTP gives the variable http its values, from a request. Nothing of it is asked for before an expression reads it.
// Its strings must stay valid until the evaluations are over.
type HTTP interface {
	// Path returns the path as it was received, Route the template that describes it, "" if there
	// is none.
	Path() string
	Route() string
	// Query returns the query as it was received.
	Query() string
	// Parameters calls a function for each variable of the route with its text in the path, as it
	// was received.
	Parameters(yield func(name, raw string) bool)
	// Lines calls a function for each header line that expressions may read.
	Lines(yield func(name, value string) bool)
}

// httpType is the type of the variable http.
var httpType = sync.OnceValue(func() *apiservercel.DeclType {
	text := apiservercel.StringType
	lists := apiservercel.NewMapType(text, apiservercel.NewListType(text, -1), -1)
	fields := map[string]*apiservercel.DeclField{}
	for name, t := range map[string]*apiservercel.DeclType{
		"path": text, "route": text, "pathParameters": apiservercel.NewMapType(text, text, -1), "query": lists,
		"headers": lists,
	} {
		fields[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
	}
	return apiservercel.NewObjectType("gateway.HTTP", fields)
})

// httpFields are always present, so that an expression needs no guards.
var httpFields = []value.Field{
	shown("path", func(f *value.Arena, h HTTP) ref.Val { return f.NewText(h.Path()) }),
	shown("route", func(f *value.Arena, h HTTP) ref.Val { return f.NewText(h.Route()) }),
	shown("pathParameters", func(f *value.Arena, h HTTP) ref.Val { return &pairs{f, h, pathPairs} }),
	shown("query", func(f *value.Arena, h HTTP) ref.Val { return &pairs{f, h, queryPairs} }),
	shown("headers", func(f *value.Arena, h HTTP) ref.Val { return &pairs{f, h, headerPairs} }),
}

func shown(name string, get func(*value.Arena, HTTP) ref.Val) value.Field {
	return value.Field{Name: name, Get: func(f *value.Arena, h any) ref.Val { return get(f, h.(HTTP)) }}
}

// pairs are the path parameters, the query or the headers as a CEL map.
type pairs struct {
	frame *value.Arena
	of    HTTP
	part  partOfHTTP
}

type partOfHTTP uint8

const (
	pathPairs   partOfHTTP = iota // each name has one value
	queryPairs                    // each name has a list of values
	headerPairs                   // the same, and names are in lower case
)

var _ traits.Mapper = (*pairs)(nil)

// each calls a function for each name and value. It charges for what it reads, which is all of it.
func (p *pairs) each(yield func(name, text string)) {
	charged := func(name, text string) bool {
		p.frame.Charge(1 + int64(len(name)+len(text))/value.BytesPerUnit)
		yield(name, text)
		return true
	}
	switch p.part {
	case pathPairs:
		p.of.Parameters(func(name, raw string) bool {
			if decoded, err := url.PathUnescape(raw); err == nil {
				raw = decoded
			}
			return charged(name, raw)
		})
	case headerPairs:
		p.of.Lines(func(name, text string) bool { return charged(strings.ToLower(name), text) })
	default:
		for rest := p.of.Query(); rest != ""; {
			var name, text string
			if name, text, rest = parameter(rest); name != "" {
				charged(name, text)
			}
		}
	}
}

// Find implements traits.Mapper.
func (p *pairs) Find(key ref.Val) (ref.Val, bool) {
	p.frame.Charge(1)
	wanted, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	var found []string
	p.each(func(name, text string) {
		if name == string(wanted) {
			found = append(found, text)
		}
	})
	switch {
	case found == nil:
		return nil, false
	case p.part == pathPairs:
		return p.frame.NewText(found[0]), true
	}
	return types.NewStringList(types.DefaultTypeAdapter, found), true
}

// Get implements traits.Indexer.
func (p *pairs) Get(key ref.Val) ref.Val {
	v, found := p.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (p *pairs) Contains(key ref.Val) ref.Val {
	_, found := p.Find(key)
	return types.Bool(found)
}

func (p *pairs) names() []string {
	var names []string
	p.each(func(name, _ string) { names = append(names, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// Size implements traits.Sizer.
func (p *pairs) Size() ref.Val { return types.Int(len(p.names())) }

// Iterator implements traits.Iterable.
func (p *pairs) Iterator() traits.Iterator { return &value.NameIterator{Names: p.names()} }

// Equal implements ref.Val.
func (p *pairs) Equal(other ref.Val) ref.Val { return value.EqualMaps(p, other) }

// Type implements ref.Val.
func (p *pairs) Type() ref.Type { return types.MapType }

func (p *pairs) CountsItself() {}

// Value implements ref.Val.
func (p *pairs) Value() any { return types.NoSuchOverloadErr() }

// InOrder implements value.Ordered.
func (p *pairs) InOrder() {}

// String implements fmt.Stringer, for errors that print the value.
func (p *pairs) String() string { return p.Type().TypeName() }

// ConvertToType implements ref.Val.
func (p *pairs) ConvertToType(t ref.Type) ref.Val { return value.ConvertMap(p, t) }

// ConvertToNative implements ref.Val.
func (p *pairs) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from 'http' to '%s'", t)
}
