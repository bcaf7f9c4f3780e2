package status

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/quote"
)

// AppendJSON appends the Status as encoding/json would write it (kind and apiVersion filled in if
// they are empty), without reflection.
func AppendJSON(dst []byte, s *metav1.Status) []byte {
	kind, apiVersion := s.Kind, s.APIVersion
	if kind == "" {
		kind = "Status"
	}
	if apiVersion == "" {
		apiVersion = "v1"
	}
	dst = append(dst, `{"kind":`...)
	dst = quote.AppendHTML(dst, kind)
	dst = append(dst, `,"apiVersion":`...)
	dst = quote.AppendHTML(dst, apiVersion)
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
		dst = quote.AppendHTML(dst, m.ShardInfo.Selector)
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
	return quote.AppendHTML(dst, value)
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
