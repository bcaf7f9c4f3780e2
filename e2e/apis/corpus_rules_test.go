package apis

import (
	"bytes"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The rules by which the gateway refuses, on purpose, what JSON Schema has for right.
const (
	// The value of a discriminator chooses the alternative, and must be a known one.
	byDiscriminator = "a discriminator"
	// What a patch makes of the object must be right by the schema of the PUT's body, else of the POST's. The object that the
	// backend has is empty here.
	byResult = "the result of a patch"
	// The object of a resource is an object, even if its schema names no type.
	byObject = "the kind of a body without a type"
	// A schema of Swagger 2 of the type null is converted to one without a type, for the validators.
	byNullType = "the type null of Swagger 2"
)

// ruleFor returns the rule by which a right request is refused; empty if there is none.
func (c *corpusRun) ruleFor(d *published, s *sample) string {
	if !c.strict().judge(s).isRight {
		return byDiscriminator
	}
	if s.body == nil || s.operation.body == nil {
		return ""
	}
	at := s.operation.body.schemas[s.mediaType]
	body, _ := d.follow(d.at(at), at)
	if s.operation.method == "patch" && d.isWrongResult(s) {
		return byResult
	}
	if at == "" || body["type"] == nil {
		switch {
		case body["nullable"] == true:
			return byNullType
		case !bytes.HasPrefix(s.body, []byte("{")):
			return byObject
		}
	}
	return ""
}

// isWrongResult reports whether what a patch makes of an empty object is wrong as the body of a PUT of the same path, or
// else as the body of a POST to the collection.
func (d *published) isWrongResult(s *sample) bool {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.body))
	if err != nil {
		return false
	}
	path := s.operation.path
	for _, of := range []string{"put " + path, "post " + path[:strings.LastIndexByte(path, '/')]} {
		for _, o := range d.operation {
			if o.String() != of || o.body == nil {
				continue
			}
			for _, media := range o.body.media {
				if at := o.body.schemas[media]; at != "" {
					return !d.judgeValue(at, "body", value).isRight
				}
			}
		}
	}
	return false
}
