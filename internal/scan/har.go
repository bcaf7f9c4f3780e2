package scan

import (
	"mime"
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/recorded"
)

// harShape reads an entry of a recorded HAR. It implements shape.
type harShape struct{}

// read implements shape.
func (harShape) read(w *worker, text []byte, i *item) string {
	r, err := recorded.Entry(text, recordLimits(w.scan.options.New.Gateway.ObjectLimits()))
	if err != nil {
		return w.unusable(i, err)
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut:
	case http.MethodPatch:
		return "it is a patch, and a HAR does not have the stored object"
	default:
		return notWrite
	}
	if len(r.Body) == 0 {
		return "the entry has no body"
	}
	switch media, _, _ := mime.ParseMediaType(r.ContentType); {
	case media == "application/yaml":
		if r.Body, err = manifest.ReadBody(r.Body); err != nil {
			return "the body of the entry cannot be read"
		}
	case media != "" && media != "application/json" && !strings.HasSuffix(media, "+json"):
		return "the body of the entry is no JSON"
	}
	w.replay(r)
	_, host, _ := strings.Cut(r.Origin, "://")
	w.trial.host = []byte(host)
	w.trial.upstream = "" // the URL is a client's
	return ""
}
