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
var madeAnew = regexp.MustCompile(`^/object/(metadata/uid|spec/clusterIPs?(/0)?|spec/(selector|template)/.*controller-uid)$`)

// isTime matches a time.
var isTime = regexp.MustCompile(`^string 2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d`)

// ledger has what differs for a reason. No row names kinds, namespaces, names, users or options of requests.
var ledger = []row{
	{"what Kubernetes does not declare of request and namespaceObject, and shows by dyn() alone", false, func(_ *question, _ string, d difference) bool {
		return hasPrefix(d.path, "/request/uid", "/request/object", "/request/oldObject", "/namespaceObject/apiVersion",
			"/namespaceObject/kind", "/namespaceObject/metadata/managedFields")
	}},
	{"the server's policies are never about policies and webhooks, so that nobody is locked out; the gateway's own are files", false, func(q *question, _ string, d difference) bool {
		return d.path == "answer" && strings.HasPrefix(q.resource, "admissionregistration.k8s.io/")
	}},
	{"a PUT without a version that both refuse: the policy says so before the server would", false, func(q *question, _ string, d difference) bool {
		return d.path == "answer" && q.method == "PUT" && strings.HasPrefix(d.native, "422 ") &&
			strings.HasPrefix(d.got, "422 ") && strings.Contains(d.native, "must be specified for an update")
	}},
	{"what the server sets in a new object, its defaults among it, before it is sent; admitOn: DryRunResult shows it", false, func(q *question, through string, d difference) bool {
		return through == judgesRequests && q.creates() && hasPrefix(d.path, "/object") && d.got == unset &&
			!isNameOrNamespace(d)
	}},
	{"a new object in protobuf has members that are empty, for which the server has defaults; admitOn: DryRunResult shows them", false, func(q *question, through string, d difference) bool {
		return through == judgesRequests && q.creates() && q.contentType == protobufType &&
			hasPrefix(d.path, "/object") && !isNameOrNamespace(d)
	}},
	{"what the server makes anew for each object: its uid, the time, addresses", false,
		func(q *question, _ string, d difference) bool {
			return q.creates() && hasPrefix(d.path, "/object") &&
				(madeAnew.MatchString(d.path) && d.native != unset && d.got != unset || isTime.MatchString(d.native) &&
					isTime.MatchString(d.got))
		}},
	{"managedFields of a PUT that changes something, which the server alone writes down; admitOn: DryRunResult shows them", false, func(q *question, through string, d difference) bool {
		return through == judgesRequests && q.method == "PUT" && hasPrefix(d.path, "/object/metadata/managedFields")
	}},
	{"managedFields in the answer to a dry run: they have what policies changed, and another time; a binding and an eviction have none", false, func(q *question, through string, d difference) bool {
		isLater := q.method == "PATCH" && isTime.MatchString(d.native) && isTime.MatchString(d.got)
		return (through != judgesRequests || isLater) && hasPrefix(d.path, "/object/metadata/managedFields")
	}},
	{"the answer to a dry run, to which the server gives its defaults once more: the labels of a Job, the phase of a claim, no drivers", false, func(q *question, _ string, d difference) bool {
		return q.creates() && (strings.HasSuffix(q.resource, " jobs") && hasPrefix(d.path, "/object/metadata/labels") ||
			strings.HasSuffix(q.resource, " persistentvolumeclaims") && hasPrefix(d.path, "/object/status") ||
			strings.HasSuffix(q.resource, " csinodes") && hasPrefix(d.path, "/object/spec/drivers"))
	}},
	{"what a PUT to a status or another part of Kubernetes' own kinds takes of labels, and the time that it sets in conditions; admitOn: DryRunResult shows it", false, func(q *question, through string, d difference) bool {
		isCondition := strings.HasPrefix(d.path, "/object/status/conditions/")
		return q.method == "PUT" && q.isOwn && strings.Contains(q.resource, "/") &&
			(through == judgesRequests && (hasPrefix(d.path, "/object/metadata/labels") || isCondition &&
				d.got == unset) ||
				isCondition && isTime.MatchString(d.native) && isTime.MatchString(d.got)) // a second later
	}},
}
