package cors

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/message"
)

// AppendHead appends the head of the preflight that a browser sends before a request, or would send if
// one were needed: by the method, host and target of the request and by the headers that a script has set.
func (q *Preflight) AppendHead(dst []byte) []byte {
	host := q.Host
	if host == "" {
		host = string(q.Head.Host)
	}
	dst = append(append(append(dst, "OPTIONS "...), q.Target...), " HTTP/1.1\r\nHost: "...)
	dst = append(append(append(dst, host...), "\r\nOrigin: "...), q.Origin...)
	method, names := q.Head.Method, strings.Join(scripted(q.Head), ",")
	if IsPreflight(q.Head) {
		method, _ = q.Head.Lookup(requestMethod)
		asked, _ := q.Head.Lookup(requestHeaders)
		names = string(asked)
	}
	dst = append(append(append(dst, "\r\n"+requestMethod+": "...), method...), "\r\n"...)
	if names != "" {
		dst = append(append(append(dst, requestHeaders+": "...), names...), "\r\n"...)
	}
	return append(dst, "Accept: */*\r\n\r\n"...)
}

// Relay sends the preflight of a browser on, without anything else that it says.
func Relay(head *message.Head, ask Ask) (*message.Response, error) {
	return ask(&Preflight{Head: head, Origin: originOf(head)})
}

// CopyGrant answers a preflight with the backend's answer to it.
func CopyGrant(r, answer *message.Response) {
	r.Start(http.StatusNoContent)
	if answer.Status() >= 300 {
		return
	}
	for _, name := range [...]string{allowOrigin, allowCredentials, allowMethods, allowHeaders, maxAge, vary} {
		for _, value := range answer.Headers(name) {
			r.Add(name, value)
		}
	}
}

// unscripted are headers that browsers set themselves, or let scripts set without asking.
var unscripted = [...]string{"accept-charset", "accept-language", "content-language", "cache-control", "dnt", "pragma",
	"priority", "referer", "set-cookie", "upgrade-insecure-requests"}

// scripted returns the names, in lower case and in order, of the headers for which a browser asks.
func scripted(head *message.Head) []string {
	var names []string
	for _, l := range head.Headers() {
		switch {
		case l.Dropped:
			continue
		case l.Field == message.FieldAuthorization, l.Field == message.FieldIfMatch:
		case l.Field == message.FieldContentType:
			if isSimple(l.Value) {
				continue
			}
		case l.Field != message.FieldOther:
			continue
		}
		name := strings.ToLower(string(l.Name))
		isSet := strings.HasPrefix(name, "sec-") || strings.HasPrefix(name, "proxy-") ||
			strings.HasPrefix(name, "access-control-request-")
		if !isSet && !slices.Contains(unscripted[:], name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isSimple reports whether a script may send a body of a media type without asking.
func isSimple(contentType []byte) bool {
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	switch string(bytes.ToLower(bytes.TrimSpace(media))) {
	case "application/x-www-form-urlencoded", "multipart/form-data", "text/plain":
		return true
	}
	return false
}
