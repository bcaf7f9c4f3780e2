package proxy

import (
	"bytes"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/protobuf"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

const (
	yamlType = "application/yaml"

	mediaTypes     = jsonType
	yamlMediaTypes = jsonType + ", " + yamlType
	// kubernetesMediaTypes are those of the kinds that an API server has built in.
	kubernetesMediaTypes = yamlMediaTypes + ", " + protobuf.MediaType

	patchMediaTypes = "application/json-patch+json, application/merge-patch+json"
	// kubernetesPatchMediaTypes are those that a Kubernetes backend may know as well.
	kubernetesPatchMediaTypes = patchMediaTypes + ", application/strategic-merge-patch+json, application/apply-patch+yaml"
)

// language is what a body is written in.
type language uint8

const (
	inJSON language = iota
	inYAML
	inProtobuf
)

// checkMediaType lets only types pass that the gateway reads itself, in one encoding.
func (x *exchange) checkMediaType() error {
	h := &x.conn.head
	if encoding := h.Value(wire.FieldContentEncoding); len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
		return status.UnsupportedEncoding(string(encoding))
	}
	contentType := h.Value(wire.FieldContentType)
	if x.info.Verb == resource.VerbPatch || x.info.Verb == "patch" {
		switch x.patchType = patchTypeOf(contentType); {
		case x.patchType == noPatch && !x.upstream.plain:
			return status.UnsupportedMediaType(kubernetesPatchMediaTypes)
		case x.patchType == noPatch, x.patchType == applyPatch && x.upstream.plain:
			return status.UnsupportedMediaType(patchMediaTypes)
		}
		return nil
	}
	if isJSON(contentType) {
		x.language = inJSON
		return nil
	}
	accepted := x.acceptedTypes()
	switch {
	case accepted != mediaTypes && isType(contentType, yamlType):
		x.language = inYAML
	case accepted == kubernetesMediaTypes && bytes.EqualFold(bytes.TrimSpace(contentType), []byte(protobuf.MediaType)):
		if x.info.HasBody() && !x.gateway.protobuf.Knows(schema.GroupVersion{Group: x.info.Group, Version: x.info.Version}) {
			return status.UnsupportedMediaType(yamlMediaTypes)
		}
		x.language = inProtobuf
	default:
		return status.UnsupportedMediaType(accepted)
	}
	return nil
}

// acceptedTypes are the types that objects may be sent in, as an API server lists them: protobuf for custom resources too,
// which have none.
func (x *exchange) acceptedTypes() string {
	switch {
	case !x.info.IsResource, x.upstream.plain && (x.res == nil || !x.res.YAML):
		return mediaTypes
	case x.upstream.plain:
		return yamlMediaTypes
	}
	return kubernetesMediaTypes
}

// isJSON tells whether a Content-Type is that of JSON in UTF-8.
func isJSON(contentType []byte) bool { return isType(contentType, jsonType) }

// isType compares a media type; the only parameter that may follow is the charset that JSON has anyway.
func isType(contentType []byte, want string) bool {
	media, rest, more := bytes.Cut(contentType, []byte(";"))
	if !bytes.EqualFold(bytes.TrimSpace(media), []byte(want)) {
		return false
	}
	if !more {
		return true
	}
	key, value, _ := bytes.Cut(bytes.TrimSpace(rest), []byte("="))
	value = bytes.Trim(value, `"`)
	return bytes.EqualFold(key, []byte("charset")) && bytes.EqualFold(value, []byte("utf-8"))
}

// transcode makes JSON of a body that is written in another language. JSON is what is judged, and what is sent on: no server
// can read it in another way than the gateway did.
func (x *exchange) transcode() error {
	switch {
	case x.patchType == applyPatch, x.language == inYAML:
		return x.transcodeYAML()
	case x.language == inProtobuf:
		return x.transcodeProtobuf()
	}
	return nil
}

// yamlMemory is about how many times its own size YAML takes in memory while it is read.
const yamlMemory = 40

// transcodeYAML makes JSON of YAML, which an object in braces is already.
func (x *exchange) transcodeYAML() error {
	if bytes.HasPrefix(bytes.TrimLeft(x.body, " \t\r\n"), []byte("{")) {
		x.transcoded = x.language != inJSON
		return nil
	}
	return x.makeJSON(yamlMemory*int64(len(x.body)), func() ([]byte, error) {
		text, err := manifest.ReadBody(x.body)
		switch {
		case errors.Is(err, manifest.ErrLarge):
			return nil, status.RequestEntityTooLarge("the body %s", err.Error())
		case err != nil:
			return nil, status.BadRequest("the body must be YAML that can be read in one way only: %s", err.Error())
		}
		return text, nil
	})
}

// transcodeProtobuf makes JSON of the protobuf of one of Kubernetes' own kinds.
func (x *exchange) transcodeProtobuf() error {
	limits := x.gateway.documentLimits
	m, err := x.gateway.protobuf.Read(x.body, protobuf.Limits{Bytes: limits.Bytes, Depth: limits.Depth, Accepted: yamlMediaTypes})
	if err != nil {
		return err
	}
	return x.makeJSON(m.Memory, m.JSON)
}

// makeJSON replaces the body by the JSON that is made of it. What that takes counts as bodies in flight do.
func (x *exchange) makeJSON(memory int64, read func() ([]byte, error)) error {
	budget := x.gateway.budget
	if !budget.reserve(memory) {
		return errNoBudget()
	}
	defer budget.free(memory)
	text, err := read()
	if err != nil {
		return err
	}
	if int64(len(text)) > x.gateway.bodyLimit {
		return status.RequestEntityTooLarge("the object in the body must be at most %d bytes as JSON", x.gateway.bodyLimit)
	}
	x.body, err = x.conn.replaceBody(text, budget)
	x.transcoded = x.language != inJSON
	x.language = inJSON
	return err
}
