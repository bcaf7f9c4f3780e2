package status

import (
	"encoding/json"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An AccessRule is one rule of a role: what a user may do with which resources. The zero value
// means no rule.
type AccessRule struct {
	Group, Resource, Subresource string
	Verb                         string
}

// String returns the rule as it stands in a role.
func (r *AccessRule) String() string {
	return fmt.Sprintf(`{apiGroups: [%q], resources: [%q], verbs: [%q]}`, r.Group, r.Name(), r.Verb)
}

// Name returns the resource with its subresource, as roles name it.
func (r *AccessRule) Name() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// whoMayNot finds the name of a user in the words of kube-apiserver.
var whoMayNot = regexp.MustCompile(`\bUser "([^"]+)" cannot `)

// AccountMayNot is 403 for a client whose request depends on what the gateway's own account may not ask the upstream
// for. It names the rule that the account lacks, and the account if the upstream's refusal does.
func AccountMayNot(gr schema.GroupResource, name string, rule *AccessRule, upstream, refusal string) *Error {
	return Forbidden(gr, name, AccountLacks(rule, upstream, refusal))
}

// AccountLacks is the sentence about a rule that the gateway's own account lacks.
func AccountLacks(rule *AccessRule, upstream, refusal string) string {
	who := "the gateway's own account"
	if found := whoMayNot.FindStringSubmatch(refusal); found != nil {
		who = "the gateway's own account '" + found[1] + "'"
	}
	return sanitizer.Replace(fmt.Sprintf("%s lacks a right at the upstream '%s', so that policies cannot judge the request: add %s to its role",
		who, upstream, rule))
}

// MessageOf returns the message of a Status; "" if the body is not one.
func MessageOf(body []byte) string {
	var s struct{ Kind, Message string }
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		return ""
	}
	return s.Message
}
