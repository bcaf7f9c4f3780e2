package deploy

import (
	"regexp"
	"strings"
)

// A row of the ledger is a difference between what policies see natively and through a gateway that has a reason.
type row struct {
	name      string
	isPending bool // it is a fault that is being mended
	covers    func(q *question, through string, d difference) bool
}

// judgesRequests is the gateway whose policies judge requests. The other one's judge what the server would store.
const judgesRequests = "Impersonate"

func (q *question) creates() bool { return q.method == "POST" || strings.Contains(q.path, "/fresh") }

func hasPrefix(path string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

func isNameOrNamespace(d difference) bool {
	return hasPrefix(d.path, "/object/metadata/name", "/object/metadata/namespace")
}

// madeAnew is what the server makes anew each time, so that no two objects have the same.
var madeAnew = regexp.MustCompile(`^/object/(metadata/(uid|creationTimestamp)|spec/clusterIPs?(/0)?|spec/(selector|template)/.*controller-uid|spec/drivers/0/.*)$`)

var ledger = []row{
	{"what Kubernetes does not declare of request and namespaceObject, and shows by dyn() alone", false, func(_ *question, _ string, d difference) bool {
		return hasPrefix(d.path, "/request/uid", "/request/object", "/request/oldObject", "/namespaceObject/apiVersion", "/namespaceObject/kind", "/namespaceObject/metadata/managedFields")
	}},
	{"the server's policies are never about policies and webhooks, so that nobody is locked out; the gateway's own are files", false, func(q *question, _ string, d difference) bool {
		return d.path == "answer" && strings.HasPrefix(q.resource, "admissionregistration.k8s.io/")
	}},
	{"what the server sets in a new object, its defaults among it, before it is sent; admitOn: DryRunResult shows it", false, func(q *question, through string, d difference) bool {
		return through == judgesRequests && q.creates() && hasPrefix(d.path, "/object") && d.got == unset && !isNameOrNamespace(d)
	}},
	{"a new object in protobuf has members that are empty, for which the server has defaults; admitOn: DryRunResult shows them", false, func(q *question, through string, d difference) bool {
		return through == judgesRequests && q.creates() && q.contentType == protobufType && hasPrefix(d.path, "/object") && !isNameOrNamespace(d)
	}},
	{"what the server makes anew for each object: its uid, the time, addresses", false, func(_ *question, _ string, d difference) bool {
		return madeAnew.MatchString(d.path)
	}},
	{"managedFields, which the server alone writes down: of what policies changed, and of a PUT", false, func(_ *question, _ string, d difference) bool {
		return hasPrefix(d.path, "/object/metadata/managedFields")
	}},
}
