package decisions

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/quote"
)

// The member of an event with the input, and how erased parts name it.
const (
	inputMember  = "input"
	erasedMember = "erased"
	erasedInput  = "/input"
)

// append appends an event as one line, in the order of OPA's EventV1.
func (l *Log) append(dst []byte, e *admission.Evaluation, r *Request, withoutInput bool) (_ []byte, err error) {
	dst = append(append(dst, `{"labels":`...), l.labels...)
	dst = append(dst, `,"decision_id":"`...)
	dst = append(l.options.NewID(dst), '"')
	dst = appendText(dst, "trace_id", r.Trace)
	dst = appendText(dst, "span_id", r.Span)
	if e.Bundle != "" {
		dst = append(quote.AppendJSON(append(dst, `,"bundles":{`...), e.Bundle), `:{`...)
		if e.Revision != "" {
			dst = quote.AppendJSON(append(dst, `"revision":`...), e.Revision)
		}
		dst = append(dst, `}}`...)
	}
	dst = appendText(dst, "path", e.Path)
	erased := e.Erased
	switch {
	case e.Input == nil:
	case withoutInput:
		erased = []string{erasedInput}
		for _, path := range e.Erased {
			if len(path) <= len(erasedInput) || path[:len(erasedInput)+1] != erasedInput+"/" {
				erased = append(erased, path)
			}
		}
	default:
		if dst, err = e.Input.AppendJSON(append(dst, `,"input":`...)); err != nil {
			return dst, err
		}
	}
	if e.Result != nil {
		if dst, err = e.Result.AppendJSON(append(dst, `,"result":`...)); err != nil {
			return dst, err
		}
	}
	dst = appendTexts(dst, erasedMember, erased)
	if e.Failure != "" {
		dst = quote.AppendJSON(append(dst, `,"error":{"code":`...), e.Code)
		dst = quote.AppendJSON(append(dst, `,"message":`...), e.Failure)
		dst = append(dst, '}')
	}
	dst = appendText(dst, "requested_by", r.Client)
	dst = append(dst, `,"timestamp":"`...)
	dst = e.Began.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","metrics":{"timer_rego_query_eval_ns":`...)
	dst = strconv.AppendInt(dst, e.Took.Nanoseconds(), 10)
	dst = append(dst, '}')
	if r.Number > 0 {
		dst = strconv.AppendUint(append(dst, `,"req_id":`...), r.Number, 10)
	}
	return append(appendCustom(dst, e, r), "}\n"...), nil
}

// appendCustom appends what OPA's format has no member for.
func appendCustom(dst []byte, e *admission.Evaluation, r *Request) []byte {
	dst = quote.AppendJSON(append(dst, `,"custom":{"kind":`...), e.Kind)
	dst = appendText(dst, "policy", e.Policy)
	dst = appendText(dst, "binding", e.Binding)
	dst = appendText(dst, "engine", e.Engine)
	dst = appendTexts(dst, "actions", e.Actions)
	if e.Failure == "" {
		dst = strconv.AppendInt(append(dst, `,"violations":`...), int64(e.Violations), 10)
	} else {
		dst = appendText(dst, "verdict", string(admission.Errored))
	}
	dst = appendText(dst, "configuration", r.Configuration)
	dst = appendText(dst, "policies", r.Policies)
	return append(appendText(dst, "request_id", r.ID), '}')
}

// appendText appends a member, unless its value is empty.
func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(quote.AppendJSON(append(dst, ','), name), ':')
	return quote.AppendJSON(dst, value)
}

// appendTexts appends a member that is a list, unless it is empty.
func appendTexts(dst []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return dst
	}
	dst = append(quote.AppendJSON(append(dst, ','), name), ":["...)
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = quote.AppendJSON(dst, v)
	}
	return append(dst, ']')
}

// withoutInput returns an event without its input; nil if it has none.
func withoutInput(event []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(event, &members) != nil || members[inputMember] == nil {
		return nil
	}
	delete(members, inputMember)
	var erased []string
	if text := members[erasedMember]; text != nil && json.Unmarshal(text, &erased) != nil {
		return nil
	}
	text, err := json.Marshal(append([]string{erasedInput}, erased...))
	if err != nil {
		return nil
	}
	members[erasedMember] = text
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(members) != nil {
		return nil
	}
	return b.Bytes()
}
