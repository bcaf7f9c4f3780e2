package explaining

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/explanation"
)

// hiding says what an explanation may show. Values of other objects than the one in the request are digests
// unless the configuration says otherwise (ERR-7).
//
// What may come from a Secret is withheld by where it comes from: no value of an expression that may have read one, nor
// of a part of it, and no message of a policy that may have. How the value was computed does not matter: a text that
// was split and joined is the Secret's all the same.
type hiding struct {
	showsValues bool
	secret      Secrets
	object      hidden
	key         []byte
	paths       []string // of hidden values in the object
	secretPaths []string // of values in the object that may come from Secrets
	secrets     []string // that texts may not repeat
}

// Secrets say which of the other objects that expressions read may be Secrets.
type Secrets struct {
	// Parameters are the ones of the policy that runs, or of any if none runs. Collections are the
	// objects of any StateSource.
	Parameters, Collections bool
}

// withheld stands for what may come from a Secret.
const withheld = "(withheld: it may show a Secret)"

// hold stands for a value that may come from a Secret; nothing stays nothing.
func hold(json string) string {
	if json == "" {
		return ""
	}
	return withheld
}

// isSecret reports whether a value with such an origin may come from a Secret. mixes says that it reads what another
// policy took from one.
func (h *hiding) isSecret(r cel.Reads, mixes bool) bool {
	return mixes || h.object.isSecret && (r.Object || r.Old) || (h.secret.Parameters || h.secret.Collections) &&
		r.Others
}

// hidden says what the object is.
type hidden struct {
	isOwn    bool // it is the one in the request
	isSecret bool
}

// begin makes the key of the digests: equal values of one explanation have one digest, and no others do.
func (h *hiding) begin() {
	h.key = make([]byte, sha256.Size)
	_, _ = rand.Read(h.key) // which never fails
}

// hides reports whether a value with such an origin may not be shown.
// mixes says that what it reads of the object may be what the stored one has.
func (h *hiding) hides(r cel.Reads, mixes bool) bool {
	if h.showsValues {
		return false
	}
	return r.Old || r.Others || r.Object && (!h.object.isOwn || mixes)
}

// chains are the members of the object that an expression reads.
var chains = regexp.MustCompile(`\b(?:object|self)\b((?:\.[A-Za-z_][A-Za-z_0-9]*)*)`)

// mixes reports whether an expression reads members of the object that are at some paths, above or below.
func mixes(expression string, paths []string) bool {
	if len(paths) == 0 {
		return false
	}
	for _, found := range chains.FindAllStringSubmatch(expression, -1) {
		read := strings.TrimPrefix(found[1], ".")
		for _, path := range paths {
			if within(read, path) || within(path, read) {
				return true
			}
		}
	}
	return false
}

// within reports whether a path is another one, or below it.
func within(path, of string) bool {
	return of == "" || path == of || strings.HasPrefix(path, of+".") || strings.HasPrefix(path, of+"[")
}

// value is a value as JSON, or what stands for it.
func (h *hiding) value(json string, r cel.Reads, mixes bool) string {
	if !h.hides(r, mixes) {
		return h.text(json)
	}
	return h.digest(json)
}

// digest stands for a value. Truth values show in the verdict anyway.
func (h *hiding) digest(json string) string {
	kind := "number"
	switch {
	case json == "" || json == "true" || json == "false" || json == "null":
		return json
	case json[0] == '"':
		kind = "string"
	case json[0] == '{':
		kind = "object"
	case json[0] == '[':
		kind = "list"
	case strings.HasPrefix(json, "error: "):
		return "error"
	case json[0] != '-' && (json[0] < '0' || json[0] > '9'):
		kind = "value"
	}
	m := hmac.New(sha256.New, h.key)
	m.Write([]byte(json))
	return "(" + kind + " " + hex.EncodeToString(m.Sum(nil)[:4]) + ")"
}

// An origin lists the possible sources of an edit's values.
type origin struct{ others, secrets bool }

// edit hides the values of an edit, if they may come from other objects or are a Secret's.
func (h *hiding) edit(e *explanation.Edit, from origin) {
	isOwn := h.object.isSecret && isSecret(e.Path)
	if from.secrets {
		h.secretPaths = append(h.secretPaths, e.Path)
		e.New = hold(e.New)
	} else if isOwn || from.others && !h.showsValues {
		h.paths = append(h.paths, e.Path)
		e.New = h.digest(e.New)
	}
	switch {
	case slices.ContainsFunc(h.secretPaths,
		func(path string) bool { return within(e.Path, path) || within(path, e.Path) }):
		e.Old = hold(e.Old) // a policy before may have set it
	case isOwn || (from.others || !h.object.isOwn) && !h.showsValues:
		e.Old = h.digest(e.Old)
	}
}

// isSecret reports whether a field of a Secret has its data, or what kubectl keeps of it.
func isSecret(path string) bool {
	const applied = `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`
	for _, root := range []string{"data", "stringData", applied} {
		if within(path, root) {
			return true
		}
	}
	return path == "" || path == "metadata" || path == "metadata.annotations"
}

// learn keeps the data of a Secret, which texts may not repeat.
func (h *hiding) learn(t explanation.Tree) {
	if !h.object.isSecret {
		return
	}
	root, _ := t.(map[string]any)
	for _, member := range []string{"data", "stringData"} {
		values, _ := root[member].(map[string]any)
		for _, v := range values {
			text, _ := v.(string)
			h.keep(text)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && member == "data" {
				h.keep(string(plain))
			}
		}
	}
	slices.Sort(h.secrets)
	h.secrets = slices.Compact(h.secrets)
	slices.SortStableFunc(h.secrets, func(a, b string) int { return len(b) - len(a) })
}

// leastSecret is how long a value is at least that texts may not repeat. Shorter ones stand in words
// that have nothing to do with them.
const leastSecret = 3

func (h *hiding) keep(text string) {
	if len(text) >= leastSecret {
		h.secrets = append(h.secrets, text)
	}
}

// text is a text without the data of Secrets.
func (h *hiding) text(s string) string {
	for _, secret := range h.secrets {
		s = strings.ReplaceAll(s, secret, "(hidden)")
		if quoted := fmt.Sprintf("%q", secret); strings.Contains(s, quoted[1:len(quoted)-1]) {
			s = strings.ReplaceAll(s, quoted[1:len(quoted)-1], "(hidden)")
		}
	}
	return s
}

// body adds the body of a message. SHA256 and Bytes describe the bytes that would be sent.
func (h *hiding) body(m *explanation.Message, body []byte) {
	sum := sha256.Sum256(body)
	m.Bytes = len(body)
	defer func() {
		if !m.IsHidden { // for by the sum of a body one can guess what is hidden in it
			m.SHA256 = hex.EncodeToString(sum[:])
		}
	}()
	text := string(body)
	switch {
	case h.object.isSecret && m.Method == http.MethodPatch, !h.showsValues && m.Method == http.MethodPatch &&
		len(h.paths) > 0,
		!h.showsValues && !h.object.isOwn && m.Method == http.MethodPut, m.Method == http.MethodPatch &&
			len(h.secretPaths) > 0:
		m.IsHidden = true
		return
	case h.object.isSecret || len(h.paths) > 0 && !h.showsValues || len(h.secretPaths) > 0:
		tree, hidden := explanation.Replace(explanation.Parse(body), func(path string, value any) (string, bool) {
			if slices.Contains(h.secretPaths, path) {
				return withheld, true
			}
			if h.object.isSecret && path != "" && path != "metadata" && path != "metadata.annotations" &&
				isSecret(path) || slices.Contains(h.paths, path) && !h.showsValues {
				return h.digest(explanation.Encode(value)), true
			}
			return "", false
		})
		if m.IsHidden = hidden; hidden {
			text = explanation.Encode(tree)
		}
	}
	if m.IsCut = len(text) > maxBody; m.IsCut {
		text = explanation.Cut(text, maxBody)
	}
	m.Body = h.text(text)
}
