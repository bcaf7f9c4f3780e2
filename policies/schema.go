package policies

import (
	"bytes"
	"maps"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/graph"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// schemaDecoder decodes objects with schemas in them. The gateway's own keywords are read by [extensionsOf].
var schemaDecoder = manifest.Decoder{
	Inside: schemaTypes,
	Elsewhere: func(t reflect.Type, key string) bool {
		return t == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() && strings.HasPrefix(key, schema.ExtensionPrefix)
	},
}

// schemaTypes says what is behind the parts of a schema that come in several forms.
func schemaTypes(t reflect.Type, isObject bool) (reflect.Type, bool) {
	switch t {
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():
		if isObject {
			return reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), true
		}
	}
	return nil, false
}

// extensionsOf reads the gateway's own keywords of the schemas at the paths; ok is false if
// something is wrong with them, which is noted. A schema without such keywords, or no schema, is
// ok.
func extensionsOf(f *findings, o *manifest.Object, paths ...*field.Path) (all []*schema.Extensions, ok bool) {
	all = make([]*schema.Extensions, len(paths))
	if !bytes.Contains(o.JSON, []byte(schema.ExtensionPrefix)) {
		return all, true
	}
	ok = true
	for i, path := range paths {
		n, found := o.At(path.String())
		if !found {
			continue
		}
		var errs field.ErrorList
		all[i], errs = schema.ReadExtensions(n, path)
		f.Fields(o, Error, errs)
		ok = ok && len(errs) == 0
	}
	return all, ok
}

// unsettable finds what no object can meet of the schemas of resources, unless that is meant.
func unsettable(kept *reuse.Store, resources []loadedResource, mayBeUnused func(*manifest.Object) bool) []Finding {
	var f findings
	for _, r := range resources {
		path := r.at.path + ".schema.openAPIV3Schema"
		if r.at.from.Kind == "APIResource" {
			path = "spec.schema.openAPIV3Schema"
		}
		if mayBeUnused(r.at.from) {
			continue
		}
		reuse.OfObject(kept, &f, r.at.from, "unsettable", path, func(f *findings) struct{} {
			if n, found := r.at.from.At(path); found {
				unsettableIn(f, r.at.from, n, true)
			}
			return struct{}{}
		})
	}
	return f.Found
}

// unsettableIn finds bounds that no value fits, and members that are required and that no client can send, because no
// property has the name: what a schema does not know is left out of objects.
func unsettableIn(f *findings, o *manifest.Object, at document.Node, root bool) {
	for _, found := range graph.Unmet(at) {
		severity := Error
		if !found.Error {
			severity = Warning
		}
		f.At(o, severity, found.At.Path(), "%s", found.Message)
	}
	known := map[string]bool{"apiVersion": root, "kind": root, "metadata": root}
	properties, _ := at.Get("properties")
	for n := properties.First(); n.Valid(); n = n.Next() {
		known[n.Key()] = true
		unsettableIn(f, o, n, false)
	}
	isOpen := false
	for _, keyword := range [...]string{"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
		"additionalProperties"} {
		n, found := at.Get(keyword)
		isOpen = isOpen || found && (n.Bool() || n.Kind() == document.Object)
	}
	required, _ := at.Get("required")
	for n := required.First(); n.Valid() && !isOpen; n = n.Next() {
		if name := n.Str(); !known[name] {
			f.At(o, Error, n.Path(), "can never be met: no property has the name '%s'%s", name,
				manifest.Suggest(name, maps.Keys(known)))
		}
	}
	for _, keyword := range [...]string{"items", "additionalProperties"} {
		if n, found := at.Get(keyword); found {
			unsettableIn(f, o, n, false)
		}
	}
}
