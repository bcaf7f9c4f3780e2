package policies

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/finding"
)

// requestReads are the places in policy files that read what a gateway may not know of a request.
// Without `identity` in the configuration every client is system:anonymous, so that a condition on
// the user would match no client, or all of them. Without an account at an API server the kind of
// an object that no file describes is what the client says.
type requestReads struct{ users, kinds []Finding }

func (r *requestReads) userAt(o *manifest.Object, path string) { r.addUser(finding.Of(o, path)) }

func (r *requestReads) addUser(f Finding) {
	f.Message = "reads who asks, but the configuration has no `identity`, so that everybody is 'system:anonymous': " +
		"name authenticators there, or say `identity: {anonymous: Allow}` if that is meant"
	r.users = appendOnce(r.users, f)
}

func (r *requestReads) addKind(f Finding) {
	f.Severity = Warning
	f.Message = "reads the kind of the request's objects, but the gateway has no account at an upstream of the dialect Kubernetes, " +
		"by which it could ask which kinds there are: the kind of what no file describes is the one that the client names. " +
		"Give the upstream a `kubeconfig`, a `tokenFile` or a `tls.certFile`"
	r.kinds = appendOnce(r.kinds, f)
}

func appendOnce(all []Finding, f Finding) []Finding {
	if slices.Contains(all, f) {
		return all
	}
	return append(all, f)
}

// expressions notes the expressions of an object that read the user, or the kind of the request's objects.
func (r *requestReads) expressions(o *manifest.Object, programs []*cel.Program) {
	each(o, programs, (*cel.Program).ReadsUser, r.addUser)
	each(o, programs, (*cel.Program).ReadsKind, r.addKind)
}

// each calls add with the place of each expression of an object that reads something.
func each(o *manifest.Object, programs []*cel.Program, reads func(*cel.Program) bool, add func(Finding)) {
	sources := map[string]bool{}
	for _, p := range programs {
		if p != nil && reads(p) {
			sources[strings.TrimSpace(p.Source())] = true
		}
	}
	if len(sources) == 0 {
		return
	}
	if !applicability.EachText(o, sources, func(n document.Node, _ bool) { add(finding.Of(o, n.Path())) }) {
		add(finding.Of(o, "spec")) // the text of the expression is not the file's own
	}
}

// gatekeepers notes constraints and mutators of Gatekeeper that match by kinds.
func (r *requestReads) gatekeepers(objects iter.Seq[*manifest.Object]) {
	for o := range objects {
		if group, _ := o.GroupVersion(); group != constraints.Group && group != constraints.MutationsGroup {
			continue
		}
		for _, path := range [...][]string{{"spec", "match", "kinds"}, {"spec", "applyTo"}} {
			n, found := o.Document().Root(), true
			for _, name := range path {
				if n, found = n.Get(name); !found {
					break
				}
			}
			if found && n.Kind() == document.Array && n.Len() > 0 {
				r.addKind(finding.Of(o, strings.Join(path, ".")))
				break
			}
		}
	}
}

// limit notes a limit that counts by the user, or exempts users.
func (r *requestReads) limit(o *manifest.Object, rule *ratelimit.Rule) {
	if rule.Key == ratelimit.User {
		r.userAt(o, "spec.key")
	}
	if len(rule.Exemptions.Usernames) > 0 {
		r.userAt(o, "spec.exemptions.usernames")
	}
	if len(rule.Exemptions.Groups) > 0 {
		r.userAt(o, "spec.exemptions.groups")
	}
}

// audit notes the rules of an audit Policy that name users.
func (r *requestReads) audit(o *manifest.Object, p *auditv1.Policy) {
	for i, rule := range p.Rules {
		if len(rule.Users) > 0 {
			r.userAt(o, fmt.Sprintf("rules[%d].users", i))
		}
		if len(rule.UserGroups) > 0 {
			r.userAt(o, fmt.Sprintf("rules[%d].userGroups", i))
		}
	}
}

// template notes what a template of Gatekeeper's runs, and what its modules read of the request.
func (l *loader) template(o *manifest.Object, t *gatekeeper.Template, reads rego.RequestReads) {
	l.plans.template(o, t)
	l.failing(o, t.Programs())
	l.reads.expressions(o, t.Programs())
	l.modulesRead(reads)
}

// modulesRead notes the places in modules in Rego that read the user, or the kind of the request's objects.
func (l *loader) modulesRead(reads rego.RequestReads) {
	for _, e := range reads.User {
		l.reads.addUser(l.regoFinding(e, Error))
	}
	for _, e := range reads.Kind {
		l.reads.addKind(l.regoFinding(e, Warning))
	}
}
