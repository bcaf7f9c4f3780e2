package refusal

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Refusal is what a template reads as self.
type Refusal struct {
	Status *metav1.Status
	// Parameters are the fields of the causes in parameters, such as 'query.limit'.
	Parameters []string
	// RequestID names the request; empty if it has no name.
	RequestID string
	// Method and Path are of the request; empty if its head could not be read.
	Method, Path string
}

// The schema of what templates read. docs/policies/errortemplate.md has a table of it.
var (
	text          = &structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
	integer       = &structuralschema.Structural{Generic: structuralschema.Generic{Type: "integer"}}
	refusalSchema = object(map[string]*structuralschema.Structural{
		"code": integer, "title": text, "reason": text, "message": text, "retryAfterSeconds": integer,
		"kind": text, "name": text, "requestID": text, "method": text, "path": text,
		"failures": list(object(map[string]*structuralschema.Structural{
			"field": text, "location": text, "reason": text, "message": text, "detail": text,
			"path": list(&structuralschema.Structural{Extensions: structuralschema.Extensions{XIntOrString: true}}),
		})),
	})
)

func object(members map[string]*structuralschema.Structural) *structuralschema.Structural {
	s := &structuralschema.Structural{Generic: structuralschema.Generic{Type: "object"},
		Properties: map[string]structuralschema.Structural{}}
	for name, m := range members {
		s.Properties[name] = *m
	}
	return s
}

func list(items *structuralschema.Structural) *structuralschema.Structural {
	return &structuralschema.Structural{Generic: structuralschema.Generic{Type: "array"}, Items: items}
}

// appendJSON appends the refusal as templates read it. Every member is there, so that no expression has to ask.
func (r *Refusal) appendJSON(dst []byte) []byte {
	s := r.Status
	title := http.StatusText(int(s.Code))
	if title == "" {
		title = string(s.Reason)
	}
	d := s.Details
	if d == nil {
		d = &metav1.StatusDetails{}
	}
	dst = appendNumber(append(dst, '{'), "code", int(s.Code))
	dst = appendText(append(dst, ','), "title", title)
	dst = appendText(append(dst, ','), "reason", string(s.Reason))
	dst = appendText(append(dst, ','), "message", s.Message)
	dst = appendNumber(append(dst, ','), "retryAfterSeconds", int(d.RetryAfterSeconds))
	dst = appendText(append(dst, ','), "kind", d.Kind)
	dst = appendText(append(dst, ','), "name", d.Name)
	dst = appendText(append(dst, ','), "requestID", r.RequestID)
	dst = appendText(append(dst, ','), "method", r.Method)
	dst = appendText(append(dst, ','), "path", r.Path)
	dst = append(dst, `,"failures":[`...)
	for i := range d.Causes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.appendFailure(dst, &d.Causes[i])
	}
	return append(dst, ']', '}')
}

// appendFailure appends what is wrong with one field.
func (r *Refusal) appendFailure(dst []byte, c *metav1.StatusCause) []byte {
	location, at := "body", c.Field
	if slices.Contains(r.Parameters, c.Field) {
		if in, name, found := strings.Cut(c.Field, "."); found {
			location, at = in, name
		}
	}
	dst = appendText(append(dst, '{'), "field", c.Field)
	dst = appendText(append(dst, ','), "location", location)
	dst = appendText(append(dst, ','), "reason", string(c.Type))
	dst = appendText(append(dst, ','), "message", c.Message)
	dst = appendText(append(dst, ','), "detail", status.WithoutValue(c))
	dst = append(dst, `,"path":[`...)
	for i, part := range pathElements(at) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if part.isIndex {
			dst = append(dst, part.text...)
		} else {
			dst = document.AppendString(dst, strings.ToValidUTF8(part.text, "\uFFFD"))
		}
	}
	return append(dst, ']', '}')
}

func appendText(dst []byte, name, value string) []byte {
	dst = append(document.AppendString(dst, name), ':')
	return document.AppendString(dst, strings.ToValidUTF8(value, "\uFFFD"))
}

func appendNumber(dst []byte, name string, value int) []byte {
	dst = append(document.AppendString(dst, name), ':')
	return strconv.AppendInt(dst, int64(value), 10)
}

// A pathElement is a member or an item in a path of fields.
type pathElement struct {
	text    string
	isIndex bool
}

// pathElements takes a path such as 'lines[0].sku' or 'metadata.labels[a.b]' apart. Brackets that are not closed are
// text.
func pathElements(path string) (all []pathElement) {
	for path != "" {
		switch end := strings.IndexAny(path, ".["); {
		case path[0] == '.':
			path = path[1:]
		case path[0] == '[' && strings.Contains(path, "]"):
			inside, rest, _ := strings.Cut(path[1:], "]")
			all, path = append(all, pathElement{inside, isIndex(inside)}), rest
		case end <= 0:
			return append(all, pathElement{text: path})
		default:
			all, path = append(all, pathElement{text: path[:end]}), path[end:]
		}
	}
	return all
}

// isIndex reports whether a key is the index of an item, as JSON writes it.
func isIndex(key string) bool {
	n, err := strconv.ParseInt(key, 10, 32)
	return err == nil && n >= 0 && strconv.FormatInt(n, 10) == key
}
