package policies

import (
	"fmt"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
)

// userReads are the places in policy files that read who asks. Without `identity` in the configuration everybody is
// system:anonymous, so that what is written there would hold for nobody, or for everybody.
type userReads struct{ found []Finding }

func (u *userReads) at(o *manifest.Object, path string) {
	u.add(Finding{File: o.File, Line: o.Line(path), Field: path})
}

func (u *userReads) add(f Finding) {
	f.Message = "reads who asks, but the configuration has no `identity`, so that everybody is 'system:anonymous': " +
		"name authenticators there, or say `identity: {anonymous: Allow}` if that is meant"
	if !slices.Contains(u.found, f) {
		u.found = append(u.found, f)
	}
}

// expressions notes the expressions of an object that read the user.
func (u *userReads) expressions(o *manifest.Object, programs []*cel.Program) {
	sources := map[string]bool{}
	for _, p := range programs {
		if p != nil && p.ReadsUser() {
			sources[strings.TrimSpace(p.Source())] = true
		}
	}
	if len(sources) == 0 {
		return
	}
	before := len(u.found)
	u.in(o, o.Document().Root(), sources)
	if len(u.found) == before { // the text of the expression is not that of the file
		u.at(o, "spec")
	}
}

func (u *userReads) in(o *manifest.Object, n document.Node, sources map[string]bool) {
	if n.Kind() == document.String && sources[strings.TrimSpace(n.Str())] {
		u.at(o, n.Path())
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		u.in(o, m, sources)
	}
}

// limit notes a limit that counts by the user, or exempts users.
func (u *userReads) limit(o *manifest.Object, r *ratelimit.Rule) {
	if r.Key == ratelimit.User {
		u.at(o, "spec.key")
	}
	if len(r.Exemptions.Usernames) > 0 {
		u.at(o, "spec.exemptions.usernames")
	}
	if len(r.Exemptions.Groups) > 0 {
		u.at(o, "spec.exemptions.groups")
	}
}

// audit notes the rules about users of an audit Policy.
func (u *userReads) audit(o *manifest.Object, p *auditv1.Policy) {
	for i, rule := range p.Rules {
		if len(rule.Users) > 0 {
			u.at(o, fmt.Sprintf("rules[%d].users", i))
		}
		if len(rule.UserGroups) > 0 {
			u.at(o, fmt.Sprintf("rules[%d].userGroups", i))
		}
	}
}

// template notes what a template of Gatekeeper's runs, and where its modules read the user.
func (l *loader) template(o *manifest.Object, t *gatekeeper.Template, users rego.Errors) {
	l.plans.template(o, t)
	l.users.expressions(o, t.Programs())
	l.modulesReadUser(users)
}

// modulesReadUser notes the places in modules in Rego that read the user.
func (l *loader) modulesReadUser(places rego.Errors) {
	for _, e := range places {
		l.users.add(l.regoFinding(e, Error))
	}
}
