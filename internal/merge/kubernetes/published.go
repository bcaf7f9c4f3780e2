package kubernetes

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/merge"
)

// Published is the schema of one of Kubernetes' own kinds, as far as it gives the types of fields;
// nil for any other kind. What can be of several types, such as a quantity, is an int-or-string.
func Published(kind schema.GroupVersionKind) *spec.Schema {
	t := TypeOf(kind)
	if t == nil || t.Object == nil {
		return nil
	}
	p := publisher{file: types(), names: map[*merge.Type]string{}}
	for name, named := range p.file.types {
		p.names[named] = name
	}
	s := p.schema(t)
	return &s
}

// publisher makes one schema.
type publisher struct {
	file  *file
	names map[*merge.Type]string
	stack []*merge.Type // around the type
}

func (p *publisher) schema(t *merge.Type) spec.Schema {
	forms := 0
	for _, is := range []bool{t.Scalar != merge.None, t.List != nil, t.Object != nil} {
		if is {
			forms++
		}
	}
	switch {
	case t == p.file.types["meta.v1.Time"] || t == p.file.types["meta.v1.MicroTime"]:
		return *spec.DateTimeProperty()
	case forms != 1 || slices.Contains(p.stack, t):
		return anything()
	case t.List != nil:
		items := p.schema(t.List.Items)
		return *spec.ArrayProperty(&items)
	case t.Object != nil:
		p.stack = append(p.stack, t)
		s := p.object(t)
		if name, ok := p.names[t]; ok {
			s.AddExtension(cel.TypeNameExtension, name)
		}
		p.stack = p.stack[:len(p.stack)-1]
		return s
	}
	switch t.Scalar {
	case merge.Numeric:
		return *spec.Int64Property()
	case merge.Text:
		return *spec.StringProperty()
	case merge.Boolean:
		return *spec.BoolProperty()
	}
	return anything()
}

func (p *publisher) object(t *merge.Type) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	if rest := t.Object.Rest; rest != nil && len(t.Object.Fields()) == 0 {
		values := p.schema(rest)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
		return s
	}
	s.Properties = make(map[string]spec.Schema, len(t.Object.Fields()))
	for _, f := range t.Object.Fields() {
		s.Properties[f.Name] = p.schema(f.Type)
	}
	for _, b := range binary {
		if t == p.file.types[b.of] {
			s.Properties[b.field] = inBase64(s.Properties[b.field])
		}
	}
	return s
}

// anything is the schema of a value of any type, which the rules of Kubernetes have for integers and strings alone.
func anything() spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Format: "int-or-string"}}
}

// inBase64 is the schema of a string, a list of strings or a map of them that are base64.
func inBase64(s spec.Schema) spec.Schema {
	switch {
	case s.Items != nil:
		return *spec.ArrayProperty(spec.StrFmtProperty("byte"))
	case s.AdditionalProperties != nil:
		return *spec.MapProperty(spec.StrFmtProperty("byte"))
	}
	return *spec.StrFmtProperty("byte")
}

// binary are the fields whose strings are base64.
var binary = []struct{ of, field string }{
	{"admissionregistration.v1.WebhookClientConfig", "caBundle"},
	{"admissionregistration.v1beta1.WebhookClientConfig", "caBundle"},
	{"certificates.v1.CertificateSigningRequestSpec", "request"},
	{"certificates.v1.CertificateSigningRequestStatus", "certificate"},
	{"certificates.v1.PodCertificateRequestSpec", "stubPKCS10Request"},
	{"certificates.v1beta1.CertificateSigningRequestSpec", "request"},
	{"certificates.v1beta1.CertificateSigningRequestStatus", "certificate"},
	{"certificates.v1beta1.PodCertificateRequestSpec", "pkixPublicKey"},
	{"certificates.v1beta1.PodCertificateRequestSpec", "proofOfPossession"},
	{"certificates.v1beta1.PodCertificateRequestSpec", "stubPKCS10Request"},
	{"core.v1.ConfigMap", "binaryData"},
	{"core.v1.Secret", "data"},
}
