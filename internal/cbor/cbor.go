// Package cbor reads bodies in CBOR, in which clients of Kubernetes may send objects, options and configurations to
// apply. It makes JSON of them as Kubernetes' own decoder reads them. That decoder takes forms that another reader of
// the same bytes may read otherwise, and none of Kubernetes' clients writes; these are refused before.
package cbor

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// Limits bound what a body may make the gateway do.
type Limits struct {
	// Bytes is the largest size of the JSON.
	Bytes int
	// Depth is how deeply values may be nested.
	Depth int
}

// A Body is a body that can be read.
type Body struct {
	// Memory is about how many bytes it takes to make JSON of the body, with the JSON.
	Memory int64

	data   []byte
	text   int64 // about as long is the JSON
	limits Limits
}

// Read accepts only a body that can be read in one way. Every error is a *status.Error: 413 for a
// body that would be too large, and 400 for one that cannot be read.
func Read(data []byte, limits Limits) (*Body, error) {
	w := walker{data: data, depth: limits.Depth}
	if err := w.document(); err != nil {
		return nil, err
	}
	return &Body{Memory: w.used(), data: data, text: w.text, limits: limits}, nil
}

// JSON returns the body as JSON, with the members of objects in the order of their names. Errors are as from [Read].
func (b *Body) JSON() ([]byte, error) {
	var value any
	if err := direct.Unmarshal(b.data, &value); err != nil {
		return nil, unreadable(err.Error())
	}
	text, err := appendJSON(make([]byte, 0, b.text), value)
	switch {
	case err != nil:
		return nil, err
	case len(text) > b.limits.Bytes:
		return nil, status.RequestEntityTooLarge("the object in the CBOR body must be at most %d bytes as JSON",
			b.limits.Bytes)
	}
	return text, nil
}

// appendJSON appends a value that was decoded.
func appendJSON(to []byte, value any) (_ []byte, err error) {
	switch v := value.(type) {
	case nil:
		return append(to, "null"...), nil
	case bool:
		return strconv.AppendBool(to, v), nil
	case int64:
		return strconv.AppendInt(to, v, 10), nil
	case float64:
		return appendFloat(to, v), nil
	case string:
		return document.AppendString(to, v), nil
	case []any:
		to = append(to, '[')
		for i, item := range v {
			if i > 0 {
				to = append(to, ',')
			}
			if to, err = appendJSON(to, item); err != nil {
				return nil, err
			}
		}
		return append(to, ']'), nil
	case map[string]any:
		to = append(to, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				to = append(to, ',')
			}
			if to, err = appendJSON(append(document.AppendString(to, name), ':'), v[name]); err != nil {
				return nil, err
			}
		}
		return append(to, '}'), nil
	}
	return nil, unreadable("it has a value that has no form in JSON")
}

// appendFloat appends a number that stays one with a fraction, as it is in CBOR: `1.0` is another type than `1` to
// policies.
func appendFloat(to []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendFloat(to, f, 'f', 1, 64)
	}
	return strconv.AppendFloat(to, f, 'g', -1, 64)
}

func unreadable(why string) error {
	return status.BadRequest("the body must be CBOR that can be read in one way only: %s", why)
}
