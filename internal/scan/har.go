package scan

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// harShape reads an entry of a recorded HAR. It implements shape.
type harShape struct{}

// read implements shape.
func (harShape) read(w *worker, text []byte, i *item) string {
	d, err := document.Parse(text, recordLimits(w.scan.options.New.Gateway.ObjectLimits()))
	if err != nil {
		return w.unreadable(i, err)
	}
	w.parsed = d
	t := &w.trial
	sent, _ := d.Root().Get("request")
	switch method := strings.ToUpper(textIn(sent, "method")); method {
	case http.MethodPost:
		t.method = methodPost
	case http.MethodPut:
		t.method = methodPut
	case http.MethodPatch:
		return "it is a patch, and a HAR does not have the stored object"
	default:
		return "it neither creates nor replaces an object"
	}
	at, err := url.Parse(textIn(sent, "url"))
	if err != nil || at.EscapedPath() == "" {
		return "the entry has no URL"
	}
	target := at.EscapedPath()
	if at.RawQuery != "" {
		target += "?" + at.RawQuery
	}
	data, _ := sent.Get("postData")
	body := []byte(textIn(data, "text"))
	if textIn(data, "encoding") == "base64" {
		if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
			return "the body of the entry cannot be read"
		}
	}
	if len(body) == 0 {
		return "the entry has no body"
	}
	switch media, _, _ := mime.ParseMediaType(textIn(data, "mimeType")); {
	case media == "application/yaml":
		if body, err = manifest.ReadBody(body); err != nil {
			return "the body of the entry cannot be read"
		}
	case media != "" && media != "application/json" && !strings.HasSuffix(media, "+json"):
		return "the body of the entry is no JSON"
	}
	answer, _ := d.Root().Get("response")
	code, _ := answer.Get("status")
	n, _ := code.Int64()
	t.isStored = n == http.StatusOK
	t.target, t.body = []byte(target), body
	t.upstream = "" // the URL is a client's
	t.user = recordedUser(sent, &w.scan.options.User)
	return ""
}

// recordedUser returns who a trusted proxy said that the client is; otherwise if there was none.
func recordedUser(request document.Node, otherwise *identity.User) *identity.User {
	headers, _ := request.Get("headers")
	if headers.Kind() != document.Array {
		return otherwise
	}
	u := &identity.User{}
	for n := headers.First(); n.Valid(); n = n.Next() {
		switch name, value := textIn(n, "name"), textIn(n, "value"); {
		case strings.EqualFold(name, "X-Remote-User"):
			u.Name = strings.Clone(value)
		case strings.EqualFold(name, "X-Remote-Group"):
			u.Groups = append(u.Groups, strings.Clone(value))
		}
	}
	if u.Name == "" {
		return otherwise
	}
	return u
}
