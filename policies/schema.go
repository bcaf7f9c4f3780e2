package policies

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/schema"
)

// schemaDecoder decodes objects with schemas in them. The gateway's own keywords are read by [loader.extensions].
var schemaDecoder = manifest.Decoder{
	Inside: schemaTypes,
	Elsewhere: func(t reflect.Type, key string) bool {
		return t == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() && strings.HasPrefix(key, schema.ExtensionPrefix)
	},
}

// schemaTypes says what is behind the parts of a schema that come in several forms.
func schemaTypes(t reflect.Type, isObject bool) (reflect.Type, bool) {
	switch t {
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](), reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():
		if isObject {
			return reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), true
		}
	}
	return nil, false
}

// extensions reads the gateway's own keywords of the schemas at the paths; ok is false if something is wrong with them,
// which is noted. Of a schema without such keywords, and where there is no schema, nothing is said.
func (l *loader) extensions(o *manifest.Object, paths ...*field.Path) (all []*schema.Extensions, ok bool) {
	all = make([]*schema.Extensions, len(paths))
	if !bytes.Contains(o.JSON, []byte(schema.ExtensionPrefix)) {
		return all, true
	}
	ok = true
	for i, path := range paths {
		var raw json.RawMessage
		if !l.read(manifest.Decoder{}.DecodeAt(o, path.String(), &raw)) {
			return all, false
		}
		if raw == nil {
			continue
		}
		d, err := document.Parse(raw, document.Limits{Bytes: len(raw), Depth: 1000, Nodes: len(raw)})
		if err != nil {
			l.at(o, Error, path.String(), "must be a value that can be read in one way only: %v", err)
			return all, false
		}
		var errs field.ErrorList
		all[i], errs = schema.ReadExtensions(d.Root(), path)
		d.Release()
		l.fields(o, Error, errs)
		ok = ok && len(errs) == 0
	}
	return all, ok
}
