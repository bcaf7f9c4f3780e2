package status

import (
	"strconv"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppendJSON appends the Status as encoding/json would write it (kind and
// apiVersion filled in where they are empty), without reflection.
func AppendJSON(dst []byte, s *metav1.Status) []byte {
	kind, apiVersion := s.Kind, s.APIVersion
	if kind == "" {
		kind = "Status"
	}
	if apiVersion == "" {
		apiVersion = "v1"
	}
	dst = append(dst, `{"kind":`...)
	dst = AppendString(dst, kind)
	dst = append(dst, `,"apiVersion":`...)
	dst = AppendString(dst, apiVersion)
	dst = append(dst, `,"metadata":`...)
	dst = appendListMeta(dst, &s.ListMeta)
	dst = appendMember(dst, "status", s.Status)
	dst = appendMember(dst, "message", s.Message)
	dst = appendMember(dst, "reason", string(s.Reason))
	if s.Details != nil {
		dst = append(dst, `,"details":`...)
		dst = appendDetails(dst, s.Details)
	}
	dst = appendNumber(dst, "code", int64(s.Code))
	return append(dst, '}')
}

// appendListMeta leaves out selfLink, which no server has filled in for years.
func appendListMeta(dst []byte, m *metav1.ListMeta) []byte {
	start := len(dst)
	dst = appendMember(dst, "resourceVersion", m.ResourceVersion)
	dst = appendMember(dst, "continue", m.Continue)
	if m.RemainingItemCount != nil {
		dst = append(dst, `,"remainingItemCount":`...)
		dst = strconv.AppendInt(dst, *m.RemainingItemCount, 10)
	}
	if m.ShardInfo != nil {
		dst = append(dst, `,"shardInfo":{"selector":`...)
		dst = AppendString(dst, m.ShardInfo.Selector)
		dst = append(dst, '}')
	}
	return closeObject(dst, start)
}

func appendDetails(dst []byte, d *metav1.StatusDetails) []byte {
	start := len(dst)
	dst = appendMember(dst, "name", d.Name)
	dst = appendMember(dst, "group", d.Group)
	dst = appendMember(dst, "kind", d.Kind)
	dst = appendMember(dst, "uid", string(d.UID))
	if len(d.Causes) > 0 {
		dst = append(dst, `,"causes":[`...)
		for i := range d.Causes {
			if i > 0 {
				dst = append(dst, ',')
			}
			c := &d.Causes[i]
			item := len(dst)
			dst = appendMember(dst, "reason", string(c.Type))
			dst = appendMember(dst, "message", c.Message)
			dst = appendMember(dst, "field", c.Field)
			dst = closeObject(dst, item)
		}
		dst = append(dst, ']')
	}
	dst = appendNumber(dst, "retryAfterSeconds", int64(d.RetryAfterSeconds))
	return closeObject(dst, start)
}

// closeObject makes an object of the members appended since start: each of
// them begins with a comma, so the first comma becomes the brace.
func closeObject(dst []byte, start int) []byte {
	if len(dst) == start {
		return append(dst, '{', '}')
	}
	dst[start] = '{'
	return append(dst, '}')
}

func appendMember(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, '"', ':')
	return AppendString(dst, value)
}

func appendNumber(dst []byte, key string, value int64) []byte {
	if value == 0 {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, '"', ':')
	return strconv.AppendInt(dst, value, 10)
}

// AppendString appends s as a JSON string, escaped as encoding/json escapes it
// (HTML characters and the line separators U+2028 and U+2029 included; invalid
// UTF-8 becomes U+FFFD).
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			if b >= ' ' && b != '"' && b != '\\' && b != '<' && b != '>' && b != '&' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch b {
			case '"', '\\':
				dst = append(dst, '\\', b)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xF])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
			i++
			start = i
			continue
		}
		if r == '\u2028' || r == '\u2029' {
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[r&0xF])
			i += size
			start = i
			continue
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
