package manifest

import (
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// OpenAPI documents are policy files too. They have neither apiVersion nor kind: their first line tells what they are.
const (
	openAPIKey = "openapi"
	swaggerKey = "swagger" // of version 2
)

// isOpenAPI tells whether an object is an OpenAPI document.
func isOpenAPI(v *value) bool {
	if _, ok := v.member("kind"); ok {
		return false
	}
	_, openAPI := v.member(openAPIKey)
	_, swagger := v.member(swaggerKey)
	return openAPI || swagger
}

// documentsOpenAPI tells whether a YAML document is an OpenAPI document. These are YAML 1.2, where 'yes', 'no', 'on' and
// 'off' are words like any other, as far as the specification has its way.
func documentsOpenAPI(doc *yaml.Node) bool {
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return false
	}
	found := false
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		switch doc.Content[0].Content[i].Value {
		case "kind":
			return false
		case openAPIKey, swaggerKey:
			found = true
		}
	}
	return found
}

func (r *reader) addOpenAPI(o *Object) {
	m, ok := o.root.member(openAPIKey)
	if !ok {
		swagger, _ := o.root.member(swaggerKey)
		r.fail(swagger.line, swaggerKey, "must be an OpenAPI document of version 3, not of '%s'; there are converters", swagger.value.text)
		return
	}
	o.OpenAPI, o.Kind, o.APIVersion = true, "OpenAPI", m.value.text
	if m.value.kind != str && m.value.kind != other || o.APIVersion == "" {
		r.fail(m.line, openAPIKey, "must be the version of the specification that the document follows, such as '3.0.3'")
		return
	}
	if info, ok := o.root.get("info"); ok {
		o.Name = info.stringMember("title")
	}
	o.JSON = o.root.appendJSON(make([]byte, 0, o.root.size))
	r.objects = append(r.objects, o)
}
