package manifest

import (
	"github.com/admission-gateway/gateway/internal/document"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// OpenAPI documents are policy files too. They have neither apiVersion nor kind: their first line
// says what they are.
const (
	openAPIKey = "openapi"
	swaggerKey = "swagger" // of version 2
	// overlayKey is of OpenAPI Overlays, which change documents.
	overlayKey = "overlay"
)

// isOpenAPI reports whether an object is an OpenAPI document.
func isOpenAPI(root document.Node) bool {
	if _, ok := root.Get("kind"); ok {
		return false
	}
	_, openAPI := root.Get(openAPIKey)
	_, swagger := root.Get(swaggerKey)
	return openAPI || swagger
}

// isOverlay reports whether an object is an OpenAPI Overlay.
func isOverlay(root document.Node) bool {
	_, hasKind := root.Get("kind")
	_, found := root.Get(overlayKey)
	return found && !hasKind
}

// documentsOpenAPI reports whether a YAML document is an OpenAPI document or an Overlay. These are YAML 1.2,
// where 'yes', 'no', 'on' and 'off' are words like any other, as far as the specification has its
// way.
func documentsOpenAPI(doc *yaml.Node) bool {
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return false
	}
	found := false
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		switch doc.Content[0].Content[i].Value {
		case "kind":
			return false
		case openAPIKey, swaggerKey, overlayKey:
			found = true
		}
	}
	return found
}

func (r *reader) addOpenAPI(o *Object) {
	root := o.Document().Root()
	version, ok := root.Get(openAPIKey)
	if !ok {
		version, _ = root.Get(swaggerKey)
	}
	o.OpenAPI, o.Kind, o.APIVersion = true, "OpenAPI", textOf(version)
	if o.APIVersion == "" {
		r.fail(o.position(version), version.Key(), "must be the version of the specification that the document follows, such as '3.0.3'")
		return
	}
	r.addTitled(o)
}

// addOverlay takes an Overlay.
func (r *reader) addOverlay(o *Object) {
	version, _ := o.Document().Root().Get(overlayKey)
	o.Overlay, o.Kind, o.APIVersion = true, "Overlay", textOf(version)
	if o.APIVersion == "" {
		r.fail(o.position(version), overlayKey, "must be the version of the specification that the overlay follows, such as '1.0.0'")
		return
	}
	r.addTitled(o)
}

// addTitled takes an object that is named by its title.
func (r *reader) addTitled(o *Object) {
	root := o.Document().Root()
	info, _ := root.Get("info")
	title, _ := info.Get("title")
	o.Name = title.Str()
	o.parsed.keep()
	r.objects = append(r.objects, o)
}

// textOf is a string, or how another scalar is written; "" for others.
func textOf(n document.Node) string {
	switch n.Kind() {
	case document.String:
		return n.Str()
	case document.Object, document.Array, document.Invalid:
		return ""
	}
	return string(n.Raw())
}
