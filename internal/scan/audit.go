package scan

import (
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
)

// recordedBytes is how much larger an event or an entry may be than the objects in it.
const recordedBytes = 4

// recordLimits returns the limits of events and entries, which have up to three objects.
func recordLimits(of document.Limits) document.Limits {
	of.Bytes *= recordedBytes
	of.Nodes *= recordedBytes
	of.Depth += 8
	return of
}

// auditShape reads an event of an audit log (audit.k8s.io) with the object of its request. It implements shape.
type auditShape struct{}

// read implements shape.
func (auditShape) read(w *worker, text []byte, i *item) string {
	d, err := document.Parse(text, recordLimits(w.scan.options.New.Gateway.ObjectLimits()))
	if err != nil {
		return w.unreadable(i, err)
	}
	w.parsed = d
	root, t := d.Root(), &w.trial
	if kind := textIn(root, "kind"); kind != "Event" {
		return "it is no audit event"
	}
	if stage := textIn(root, "stage"); stage != "ResponseComplete" && stage != "Panic" {
		return "it is an event of an earlier stage of a request"
	}
	verb := textIn(root, "verb")
	sent, _ := root.Get("requestObject")
	answered, _ := root.Get("responseObject")
	switch verb {
	case "create":
		t.method = methodPost
	case "update":
		t.method = methodPut
	case "patch":
		// The event has the patch. What came of it is in the answer.
		if sent = answered; sent.Kind() != document.Object || textIn(sent, "kind") == "Status" {
			return "it is a patch, and the event does not have the object that came of it"
		}
		t.method = methodPut
	default:
		return "it neither creates nor replaces an object"
	}
	if sent.Kind() != document.Object {
		return "the event has no requestObject: its audit level is too low"
	}
	target := textIn(root, "requestURI")
	if verb == "patch" {
		target, _, _ = strings.Cut(target, "?") // the parameters are of the patch
	}
	answer, _ := root.Get("responseStatus")
	code, _ := answer.Get("code")
	if n, ok := code.Int64(); ok && n == http.StatusOK {
		t.isStored = true
	}
	if target == "" {
		return "the event has no requestURI"
	}
	t.body, t.target, t.upstream = sent.AppendRaw(nil), []byte(target), w.scan.options.Upstream
	if old, _ := root.Get("oldObject"); old.Kind() == document.Object { // of gateways and webhooks that note it
		t.old = old.AppendRaw(nil)
	}
	t.user = userIn(root, "user", &w.scan.options.User)
	if as, found := root.Get("impersonatedUser"); found && as.Kind() == document.Object {
		t.user = userIn(root, "impersonatedUser", t.user)
	}
	return ""
}

// userIn reads who sent a request; otherwise is who did if nothing says so.
func userIn(root document.Node, member string, otherwise *identity.User) *identity.User {
	n, _ := root.Get(member)
	name := textIn(n, "username")
	if name == "" {
		return otherwise
	}
	u := &identity.User{Name: strings.Clone(name), UID: strings.Clone(textIn(n, "uid"))}
	groups, _ := n.Get("groups")
	u.Groups = textsOf(groups)
	if extra, _ := n.Get("extra"); extra.Kind() == document.Object {
		u.Extra = map[string][]string{}
		for m := extra.First(); m.Valid(); m = m.Next() {
			u.Extra[strings.Clone(m.Key())] = textsOf(m)
		}
	}
	return u
}

// textsOf returns the strings of a list.
func textsOf(list document.Node) (all []string) {
	if list.Kind() != document.Array {
		return nil
	}
	for n := list.First(); n.Valid(); n = n.Next() {
		if n.Kind() == document.String {
			all = append(all, strings.Clone(n.Str()))
		}
	}
	return all
}
