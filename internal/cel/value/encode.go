package value

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/document"
)

// AppendJSON appends a value as JSON, or says why it has none.
func (f *Arena) AppendJSON(dst []byte, v ref.Val) (json []byte, problem string) {
	f.Charge(1)
	switch v := v.(type) {
	case types.Null:
		return append(dst, "null"...), ""
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), ""
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), ""
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), ""
	case types.Double:
		return appendDouble(dst, float64(v))
	case types.String:
		return f.appendText(dst, string(v)), ""
	case types.Bytes:
		return f.appendText(dst, base64.StdEncoding.EncodeToString(v)), ""
	case types.Timestamp, types.Duration:
		s, _ := v.ConvertToType(types.StringType).(types.String)
		return f.appendText(dst, string(s)), ""
	case *Map:
		return f.appendNode(dst, v.Node), ""
	case *List:
		return f.appendNode(dst, v.Node), ""
	case *preserved:
		return f.appendNode(dst, v.node), ""
	case *Made:
		return f.appendMade(dst, v, false)
	case *types.Optional:
		if !v.HasValue() {
			return dst, "optional.none() dereference"
		}
		return f.AppendJSON(dst, v.GetValue())
	case *types.Err:
		return dst, v.String()
	case traits.Lister:
		return f.appendList(dst, v)
	case traits.Mapper:
		return f.appendMap(dst, v)
	}
	return dst, "a value of type " + v.Type().TypeName() + " cannot be written as JSON"
}

func (f *Arena) appendText(dst []byte, s string) []byte {
	f.Charge(int64(len(s)) / BytesPerUnit)
	f.MadeText(len(s))
	return document.AppendString(dst, s)
}

func (f *Arena) appendNode(dst []byte, n document.Node) []byte {
	start := len(dst)
	dst = n.AppendRaw(dst)
	f.Charge(int64(len(dst)-start) / BytesPerUnit)
	f.MadeText(len(dst) - start)
	return dst
}

// appendDouble writes a number as encoding/json does.
func appendDouble(dst []byte, d float64) (json []byte, problem string) {
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return dst, "the number " + strconv.FormatFloat(d, 'g', -1, 64) + " cannot be written as JSON"
	}
	format := byte('f')
	if abs := math.Abs(d); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, d, format, -1, 64), ""
}

func (f *Arena) appendList(dst []byte, l traits.Lister) (json []byte, problem string) {
	dst = append(dst, '[')
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, problem = f.AppendJSON(dst, it.Next()); problem != "" {
			return dst, problem
		}
	}
	return append(dst, ']'), ""
}

func (f *Arena) appendMap(dst []byte, m traits.Mapper) (json []byte, problem string) {
	keys, problem := sortedKeys(m)
	if problem != "" {
		return dst, problem
	}
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(f.appendText(dst, key), ':')
		if dst, problem = f.AppendJSON(dst, m.Get(types.String(key))); problem != "" {
			return dst, problem
		}
	}
	return append(dst, '}'), ""
}

// sortedKeys are the keys of a map, or why it cannot be written.
func sortedKeys(m traits.Mapper) (keys []string, problem string) {
	for it := m.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			return nil, "a map whose keys are not strings cannot be written as JSON"
		}
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	return keys, ""
}
