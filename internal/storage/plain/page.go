package plain

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A listPass cuts a collection to the list that was asked for, while its items pass one by one.
type listPass struct {
	selection
	options internalversion.ListOptions

	after    listPosition // what comes first stands behind it
	skipping bool         // it has not passed yet

	version  []byte       // of the list, if the backend gives it
	digest   hash.Hash    // makes one from the items if it does not
	passed   listPosition // the last item that came
	unsorted bool         // the items do not come in the order of their names
	last     listPosition // the last item of the page
	sent     int64        // items of the page
	left     int64        // items behind it
	begun    bool         // something of the list was written
	names    []string     // of the page; nil if not needed
}

// A listPosition is the position of an item in a list.
type listPosition struct {
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name"`
	// Sorted says that the items of the list came in the order of their names, so that the next
	// page can be found even if this item is gone.
	Sorted bool   `json:"sorted,omitempty"`
	Kind   string `json:"v"`
}

const tokenKind = "admission-gateway.io/v1alpha1"

// token is the position as a client gets it.
func (p listPosition) token() string {
	p.Kind = tokenKind
	text, err := json.Marshal(p)
	if err != nil {
		return "" // there are only strings in it
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// read reads a token.
func (p *listPosition) read(token string) error {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	switch {
	case err != nil:
		return errors.New("it is none that a list was answered with")
	case p.Kind != tokenKind || p.Name == "":
		return errors.New("it is not of this server")
	}
	return nil
}

// before reports whether the position is before another in a list that is sorted.
func (p *listPosition) before(namespace, name string) bool {
	return p.Namespace < namespace || p.Namespace == namespace && p.Name < name
}

// take lets an item pass, or returns document.ErrOmit for one that is not of the page.
func (l *listPass) take(object document.Node) error {
	if l.digest != nil {
		_, _ = l.digest.Write(object.Raw()) // a hash takes everything
	}
	metadata, _ := object.Get("metadata")
	namespace, name := l.namespaceOf(metadata), storage.TextIn(metadata, "name")
	if l.options.Limit > 0 || l.skipping {
		if l.passed.Name != "" && !l.passed.before(namespace, name) {
			l.unsorted = true
		}
		l.passed.Namespace, l.passed.Name = clone(l.passed.Namespace, namespace), clone("", name)
	}
	if l.skipping {
		if !l.after.Sorted {
			l.skipping = l.after.Namespace != namespace || l.after.Name != name
			return document.ErrOmit
		}
		if !l.after.before(namespace, name) {
			return document.ErrOmit
		}
	}
	if !l.selects(object) {
		return document.ErrOmit
	}
	if l.options.Limit > 0 && l.sent >= l.options.Limit {
		l.left++
		return document.ErrOmit
	}
	l.sent++
	if l.options.Limit > 0 {
		if l.names != nil {
			l.names = append(l.names, l.passed.Name)
		}
		l.last = listPosition{Namespace: l.passed.Namespace, Name: l.passed.Name}
	}
	return nil
}

// clone copies a string that lives no longer than its document; one that is there already is taken.
func clone(have, s string) string {
	if have == s {
		return have
	}
	return string(append([]byte(nil), s...))
}

// checkVersion checks that the list has the version that was asked for, once its version is known.
func (l *listPass) checkVersion() error {
	asked := l.options.ResourceVersion
	if asked == "" || asked == "0" {
		return nil
	}
	numbers := len(l.version) > 0 && allDigits(str(l.version))
	n, err := strconv.ParseUint(asked, 10, 64)
	if numbers && err != nil {
		return status.BadRequest("invalid resource version: resourceVersion: Invalid value: %q: %s",
			storage.Short(asked), err.Error())
	}
	exact := l.options.ResourceVersionMatch == metav1.ResourceVersionMatchExact || l.options.Limit > 0 &&
		l.options.ResourceVersionMatch == ""
	current, _ := strconv.ParseUint(string(l.version), 10, 64)
	switch {
	case numbers && n > current:
		return status.Timeout("Too large resource version: "+asked+", current: "+string(l.version), 1)
	case exact && asked != string(l.version):
		return status.Expired("The resourceVersion for the provided list is too old.")
	}
	return nil
}

// expired is the answer to a token of a list that is no longer the same.
func (l *listPass) expired() error {
	return status.Expired("The provided continue parameter is too old to display a consistent list result. " +
		"You must start a new list without the continue parameter.")
}

// appendHead appends what stands before the items.
func (l *listPass) appendHead(dst []byte) []byte {
	dst = document.AppendString(append(dst, `{"kind":`...), l.resource.Names.ListKind)
	dst = document.AppendString(append(dst, `,"apiVersion":`...), l.resource.APIVersion())
	return append(dst, `,"items":[`...)
}

// appendFoot appends what stands behind the items.
func (l *listPass) appendFoot(dst []byte) ([]byte, error) {
	if l.skipping && !l.after.Sorted || l.after.Sorted && l.unsorted {
		return dst, l.expired()
	}
	dst = append(dst, `],"metadata":{"continue":`...)
	if l.left > 0 {
		l.last.Sorted = !l.unsorted // all of the list has passed
		dst = document.AppendString(dst, l.last.token())
		if l.labels == nil && l.fields == nil {
			dst = strconv.AppendInt(append(dst, `,"remainingItemCount":`...), l.left, 10)
		}
	} else {
		dst = append(dst, `""`...)
	}
	if l.digest != nil {
		l.version = hex.AppendEncode(l.version[:0], l.digest.Sum(nil)[:16])
	}
	if len(l.version) > 0 {
		dst = document.AppendString(append(dst, `,"resourceVersion":`...), str(l.version))
	}
	return append(dst, "}}"...), nil
}

// setVersion takes the version of the list from the answer, or prepares for making one.
func (l *listPass) setVersion(etag []byte) {
	switch l.resource.Backend.Versions {
	case resource.NativeVersions:
		// The backend's own are not for us to make.
	default:
		if l.version = appendVersion(l.version[:0], etag); len(l.version) == 0 {
			l.digest = sha256.New()
		}
	}
}
