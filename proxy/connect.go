package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// connect is the way of a request that leads to somewhere else than to a stored object, such as into a pod.
func connect(r *request) error {
	if err := readOpaque(r); err != nil { // what another server is sent is not for the gateway to read
		return err
	}
	if err := admitConnect(r); err != nil {
		return err
	}
	if err := forwardConnect(r); err != nil {
		return err
	}
	return answerConnect(r)
}

// resolveConnect finds out whether the request, which is not about an object itself, connects, and which protocol it
// may go on in.
func resolveConnect(r *request) {
	head, i := &r.incoming.Head, &r.Info
	isAllowed := r.route.backend.upgrades.allows(i)
	if isAllowed && !i.Connect && i.IsResource {
		// What no policy file says is an object is not taken for one here.
		i.Connect = string(head.Method) == http.MethodGet || string(head.Method) == http.MethodPost && !head.HasBody()
		isAllowed = i.Connect
	}
	if isAllowed && isTunnelled(head.Upgrade) {
		r.upgrade.protocol = head.Upgrade
	}
}

// readOpaque reads the body of a request to another server, whole and within bounds, whatever it is.
func readOpaque(r *request) error {
	i := &r.Info
	switch {
	case !r.incoming.Head.HasBody():
	case r.upgrade.protocol != nil:
		return status.BadRequest("a request that asks for an upgrade may not have a body")
	case i.Subresource != "proxy":
		return status.BadRequest("a request to '%s/%s' may not have a body", i.GroupResource(), i.Subresource)
	}
	return readOpaqueBody(r)
}

// admitConnect runs the policies on CONNECT. The object that they see are the options in the query, as in Kubernetes.
func admitConnect(r *request) error {
	a := r.attempt
	a.Begin(r.Request)
	if !a.Info.Connect || !r.scope.rules.policies.Concerns(&a.Info, admission.Connect) {
		return nil
	}
	options, err := a.Info.ConnectOptions()
	if err != nil {
		return err
	}
	if options != nil {
		text, err := json.Marshal(options)
		if err != nil {
			return err
		}
		if a.Object, err = r.Parse(text, r.Limits.Stored); err != nil {
			return notJSON(err)
		}
	}
	validateAs(r, a, admission.Connect)
	if err := decide(r, a); err != nil {
		return orForbidden(r, err)
	}
	return nil
}

// forwardConnect sends the request on, with the upgrade that it asks for if that is allowed.
func forwardConnect(r *request) (err error) {
	i := &r.Info
	m := storage.Message{
		// To look into a container is not to read an object.
		IsSafe: r.upgrade.protocol == nil && i.Verb == resource.VerbGet && i.Subresource == "proxy",
	}
	switch i.Verb {
	case resource.VerbCreate, resource.VerbUpdate, resource.VerbPatch:
		if m.Body = r.Body; m.Body == nil {
			m.Body = []byte{} // an empty one
		}
	default:
		if len(r.Body) > 0 {
			m.Body = r.Body
		}
	}
	r.upgrade.tunnel, err = r.Connect(&r.route.backend.storage, &m, r.upgrade.protocol)
	return err
}

// answerConnect passes the answer on as it is: an error of another server is not one of the API.
func answerConnect(r *request) error {
	switch {
	case r.upgrade.tunnel != nil:
		r.Response.Start(http.StatusSwitchingProtocols)
	case r.Info.Subresource != "proxy":
		return completeAnswer(r, &r.Info)
	default:
		addWarnings(r)
	}
	return nil
}

// upgrades are the paths on which clients of a backend may switch to another protocol.
type upgrades struct {
	subresources []subresource
	prefixes     []string // of paths that are no resources
}

type subresource struct {
	of   schema.GroupResource
	name string
}

// newUpgrades reads entries that the configuration has checked: 'pods/exec', 'machines.example.com/console', '/live'.
func newUpgrades(entries []string) *upgrades {
	u := &upgrades{}
	for _, e := range entries {
		if strings.HasPrefix(e, "/") {
			u.prefixes = append(u.prefixes, strings.TrimSuffix(e, "/"))
			continue
		}
		name, sub, _ := strings.Cut(e, "/")
		u.subresources = append(u.subresources, subresource{schema.ParseGroupResource(name), sub})
	}
	return u
}

// allows reports whether the place, which is no object itself, is among them.
func (u *upgrades) allows(i *resource.Info) bool {
	if i.IsResource {
		for _, s := range u.subresources {
			if s.name == i.Subresource && s.of.Resource == i.Resource && s.of.Group == i.Group {
				return true
			}
		}
		return false
	}
	if i.Verb != resource.VerbGet {
		return false
	}
	for _, p := range u.prefixes {
		if under(i.Path, p) {
			return true
		}
	}
	return false
}

// isTunnelled reports whether the gateway carries a protocol: it carries the protocols that Kubernetes
// streams in. HTTP/2 is not among them, for requests in it would pass unread.
func isTunnelled(protocol []byte) bool {
	return bytes.EqualFold(protocol, []byte("websocket")) || bytes.EqualFold(protocol, []byte("SPDY/3.1"))
}

// servesUpgrades implements kind: a WebSocket is no way around what a file describes, and a client that asks an
// plain API for one can do nothing with the answer to a GET.
func (plainKind) servesUpgrades() bool { return false }

// servesUpgrades implements kind: an API server serves a watch in either protocol.
func (kubernetesKind) servesUpgrades() bool { return true }

// under reports whether a path is the prefix or below it, whole segments compared.
func under(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || prefix == "" || path[len(prefix)] == '/')
}

// passUndescribed is the way of a request that no file describes.
func passUndescribed(r *request) error {
	at(r.telemetry.explanation, explaining.Others, nil)
	return passThrough(r)
}

// passThrough is the way of a request to a plain API that no file describes: it passes as it came, with
// whatever method, body and protocol, and so does the answer, unless the route is closed to such requests.
func passThrough(r *request) (err error) {
	if r.isUnreadable {
		defer addWarnings(r)
	} else if err := r.route.admit(&r.incoming.Head, &r.Info); err != nil {
		return err
	}
	return forward(r, false)
}

// forward sends the request as it came. isRead says that its body was read already.
func forward(r *request, isRead bool) (err error) {
	head := &r.incoming.Head
	m := storage.Message{IsSafe: r.IsRead() && !head.HasBody() && head.Upgrade == nil}
	switch {
	case len(r.Body) > 0: // which was read, and may have been decoded
		m.Body = r.Body
	case !head.HasBody():
		if head.HasLength() {
			m.Body = []byte{}
		}
		if isTunnelled(head.Upgrade) {
			r.upgrade.protocol = head.Upgrade
		}
	case isRead:
		m.Body = r.Body
	case r.incoming.HasArrived(), keepsBody(r):
		if err := readOpaqueBody(r); err != nil {
			return err
		}
		m.Body = r.Body
	default:
		m.Upload = r.incoming.Upload(r.IsLastingCall())
		if limit := r.Limits.Upload; limit > 0 {
			if m.Upload.Length() > limit {
				return tooLong(limit)
			}
			m.Upload = &boundedUpload{Upload: m.Upload, limit: limit, left: limit}
		}
	}
	r.upgrade.tunnel, err = r.Connect(&r.route.backend.storage, &m, r.upgrade.protocol)
	return err
}

// boundedUpload is a body that its route bounds.
type boundedUpload struct {
	message.Upload
	limit, left int64
}

// Read implements io.Reader. What is beyond the bound does not reach the backend, which never sees a whole body then.
func (u *boundedUpload) Read(p []byte) (int, error) {
	n, err := u.Upload.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, tooLong(u.limit)
	}
	return n, err
}

// tooLong refuses a body that no file describes.
func tooLong(limit int64) error {
	return status.RequestEntityTooLarge("the body must be at most %d bytes", limit)
}
